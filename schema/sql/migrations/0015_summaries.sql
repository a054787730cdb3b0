-- The store fills the new tables and jobs.listing after each upgrade.
ALTER TABLE jobs ADD COLUMN listing TEXT CHECK (listing IS NULL OR json_valid(listing));
DROP INDEX jobs_by_state;
CREATE INDEX jobs_by_kind ON jobs (kind);
CREATE INDEX jobs_by_state ON jobs (state);
CREATE INDEX jobs_by_device ON jobs (device);
CREATE INDEX jobs_by_kind_state ON jobs (kind, state);
CREATE INDEX jobs_by_kind_device ON jobs (kind, device);
CREATE INDEX jobs_by_state_device ON jobs (state, device);
CREATE INDEX jobs_by_kind_state_device ON jobs (kind, state, device);
CREATE TABLE run_summaries (
  run_id INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
  epochs INTEGER NOT NULL,
  epoch_ms_median REAL,
  epoch_ms_min REAL,
  images_per_s REAL,
  peak_memory_bytes REAL,
  peak_memory_reason TEXT,
  test_accuracy_ratio REAL,
  test_accuracy_reason TEXT,
  train_loss REAL,
  test_loss REAL,
  launches_per_step REAL,
  launches_per_step_reason TEXT,
  launch_gap_ratio REAL,
  launch_gap_reason TEXT,
  time_cold_us_median REAL,
  time_cold_reason TEXT,
  time_warm_us_median REAL,
  time_warm_reason TEXT,
  suspect INTEGER NOT NULL CHECK (suspect IN (0, 1)),
  suspect_reason TEXT,
  cold_suspect_reason TEXT,
  warm_suspect_reason TEXT
) STRICT;

CREATE TABLE configurations (
  id INTEGER PRIMARY KEY,
  workload TEXT NOT NULL,
  variant TEXT NOT NULL,
  nondefault_params TEXT NOT NULL,
  device TEXT NOT NULL,
  UNIQUE (workload, variant, nondefault_params, device)
) STRICT;

CREATE TABLE history_series (
  id INTEGER PRIMARY KEY,
  workload TEXT NOT NULL,
  device TEXT NOT NULL,
  metrics TEXT NOT NULL CHECK (json_valid(metrics)),
  UNIQUE (workload, device, metrics)
) STRICT;

CREATE TABLE history_metrics (
  metric TEXT NOT NULL,
  series_id INTEGER NOT NULL,
  PRIMARY KEY (metric, series_id)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER history_series_metrics AFTER INSERT ON history_series BEGIN
  INSERT INTO history_metrics (metric, series_id) SELECT value, new.id FROM json_each(new.metrics);
END;

CREATE TABLE history (
  pass_id INTEGER PRIMARY KEY REFERENCES passes ON DELETE CASCADE,
  run_id INTEGER NOT NULL,
  series_id INTEGER NOT NULL REFERENCES history_series,
  configuration_id INTEGER NOT NULL REFERENCES configurations,
  finished_ns INTEGER NOT NULL,
  point TEXT NOT NULL CHECK (json_valid(point))
) STRICT;
CREATE INDEX history_by_series ON history (series_id, finished_ns);
CREATE INDEX history_by_configuration ON history (configuration_id, series_id, finished_ns);
PRAGMA user_version = 15;
