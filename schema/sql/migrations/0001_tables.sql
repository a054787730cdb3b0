-- Instants are integers: UTC nanoseconds since 1970. Beside each *_ns stands its *_at, the same as RFC 3339 text.
-- A REAL that is NULL was not measured; the reason stands in the row or in its pass.

CREATE TABLE jobs (
  id INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again, also after retention removed the job
  kind TEXT NOT NULL,
  device TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'completed', 'failed', 'cancelled', 'interrupted')),
  request TEXT NOT NULL CHECK (json_valid(request)), -- every default filled in
  deadline_s INTEGER NOT NULL,
  created_ns INTEGER NOT NULL,
  started_ns INTEGER,
  finished_ns INTEGER,
  problem_domain TEXT,
  problem_code INTEGER,
  problem_message TEXT,
  worker_deaths INTEGER NOT NULL DEFAULT 0,
  events INTEGER NOT NULL DEFAULT 0, -- events so far: the last one's seq
  events_kept INTEGER NOT NULL DEFAULT 1 CHECK (events_kept IN (0, 1)), -- 0: removed by retention
  idempotency_key TEXT UNIQUE,
  body_sha256 TEXT,
  created_at TEXT AS (strftime('%Y-%m-%dT%H:%M:%S', created_ns / 1000000000, 'unixepoch') || printf('.%09dZ', created_ns % 1000000000)),
  started_at TEXT AS (strftime('%Y-%m-%dT%H:%M:%S', started_ns / 1000000000, 'unixepoch') || printf('.%09dZ', started_ns % 1000000000)),
  finished_at TEXT AS (strftime('%Y-%m-%dT%H:%M:%S', finished_ns / 1000000000, 'unixepoch') || printf('.%09dZ', finished_ns % 1000000000))
) STRICT;
CREATE INDEX jobs_by_state ON jobs (state, device, id);
CREATE INDEX jobs_by_end ON jobs (finished_ns) WHERE finished_ns IS NOT NULL;
CREATE INDEX jobs_with_events ON jobs (finished_ns) WHERE events_kept = 1;

CREATE TABLE runs (
  id INTEGER PRIMARY KEY,
  job_id INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  workload TEXT NOT NULL,
  variant TEXT NOT NULL,
  params TEXT NOT NULL CHECK (json_valid(params)),
  -- what the worker said, with the first pass that it committed
  engine TEXT,
  dataset TEXT,
  dataset_sha256 TEXT,
  deterministic INTEGER CHECK (deterministic IN (0, 1)),
  deterministic_note TEXT,
  partial INTEGER CHECK (partial IN (0, 1)), -- fewer images than the data set has
  images_per_epoch INTEGER,
  steps_per_epoch INTEGER,
  parameters INTEGER,
  floor_operations REAL, -- the least work of one epoch
  floor_bytes REAL,
  "precision" TEXT AS (params ->> '$.precision'),
  batch_size INTEGER AS (params ->> '$.batch_size'),
  seed INTEGER AS (params ->> '$.seed'),
  UNIQUE (job_id, ordinal)
) STRICT;

CREATE TABLE devices ( -- provenance: one row for each distinct set of facts
  id INTEGER PRIMARY KEY,
  facts TEXT NOT NULL UNIQUE CHECK (json_valid(facts)),
  name TEXT AS (facts ->> '$.name'),
  uuid TEXT AS (facts ->> '$.uuid')
) STRICT;

CREATE TABLE passes (
  id INTEGER PRIMARY KEY,
  job_id INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE,
  run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  ordinal INTEGER NOT NULL, -- 0 timing, 1 activity, 2 counters
  name TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'running', 'completed', 'unavailable')),
  reason TEXT, -- why unavailable; pending again: how its worker died
  started_ns INTEGER,
  finished_ns INTEGER,
  device_id INTEGER REFERENCES devices,
  git_commit TEXT, -- the worker's
  activity_rows INTEGER NOT NULL DEFAULT 0, -- raw rows recorded
  activity_kept INTEGER NOT NULL DEFAULT 0 CHECK (activity_kept IN (0, 1)), -- 0: none, or removed by retention
  started_at TEXT AS (strftime('%Y-%m-%dT%H:%M:%S', started_ns / 1000000000, 'unixepoch') || printf('.%09dZ', started_ns % 1000000000)),
  finished_at TEXT AS (strftime('%Y-%m-%dT%H:%M:%S', finished_ns / 1000000000, 'unixepoch') || printf('.%09dZ', finished_ns % 1000000000)),
  UNIQUE (run_id, ordinal)
) STRICT;
CREATE INDEX passes_by_job ON passes (job_id, ordinal, run_id);
CREATE INDEX passes_by_end ON passes (finished_ns) WHERE finished_ns IS NOT NULL;
CREATE INDEX passes_with_activity ON passes (finished_ns) WHERE activity_kept = 1;

CREATE TABLE epochs (
  pass_id INTEGER NOT NULL REFERENCES passes ON DELETE CASCADE,
  epoch INTEGER NOT NULL, -- from 0 over warm-up and measured epochs
  warmup INTEGER NOT NULL CHECK (warmup IN (0, 1)),
  device_ms REAL,
  host_ms REAL,
  evaluation_ms REAL,
  images REAL,
  train_loss REAL,
  test_loss REAL,
  test_accuracy_ratio REAL,
  loss_scale REAL,
  skipped_steps REAL,
  sm_clock_before_mhz REAL,
  sm_clock_after_mhz REAL,
  memory_clock_mhz REAL,
  temperature_c REAL,
  power_w REAL,
  throttle_reasons TEXT NOT NULL,
  unavailable TEXT CHECK (json_valid(unavailable)), -- {field: reason}
  suspect INTEGER NOT NULL DEFAULT 0 CHECK (suspect IN (0, 1)), -- faster than its floor: not to be believed
  suspect_reason TEXT,
  epoch_ms REAL AS (coalesce(device_ms, host_ms)), -- an epoch's time: on the device's clock where it has one
  PRIMARY KEY (pass_id, epoch)
) STRICT, WITHOUT ROWID;

CREATE TABLE measurements (
  pass_id INTEGER NOT NULL REFERENCES passes ON DELETE CASCADE,
  name TEXT NOT NULL, -- ends with its unit
  value REAL,
  reason TEXT,
  PRIMARY KEY (pass_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE kernels ( -- activity: aggregate over an epoch; counters: one kernel of one step
  id INTEGER PRIMARY KEY,
  pass_id INTEGER NOT NULL REFERENCES passes ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  launch TEXT,
  phase TEXT,
  name TEXT NOT NULL,
  launches INTEGER NOT NULL,
  total_us REAL,
  min_us REAL,
  median_us REAL,
  max_us REAL,
  share_ratio REAL,
  registers_per_thread REAL,
  static_shared_bytes REAL,
  dynamic_shared_bytes REAL,
  grid_x INTEGER, grid_y INTEGER, grid_z INTEGER, -- NULL where there is no grid (CPU)
  block_x INTEGER, block_y INTEGER, block_z INTEGER,
  theoretical_occupancy_ratio REAL,
  reason TEXT,
  UNIQUE (pass_id, ordinal)
) STRICT;

CREATE TABLE kernel_metrics (
  kernel_id INTEGER NOT NULL REFERENCES kernels ON DELETE CASCADE,
  metric TEXT NOT NULL,
  value REAL,
  reason TEXT,
  PRIMARY KEY (kernel_id, metric)
) STRICT, WITHOUT ROWID;

CREATE TABLE names ( -- of the activity rows of a pass
  pass_id INTEGER NOT NULL REFERENCES passes ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  name TEXT NOT NULL,
  PRIMARY KEY (pass_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE activity_kinds (kind INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
INSERT INTO activity_kinds (kind, name) VALUES (0, 'kernel'), (1, 'memcpy'), (2, 'memset'), (3, 'memory'), (4, 'runtime'),
  (5, 'driver'), (6, 'range'), (7, 'overhead'), (8, 'span');

CREATE TABLE activity ( -- raw rows, ns since the start of the trace; the first thing that retention removes
  pass_id INTEGER NOT NULL REFERENCES passes ON DELETE CASCADE,
  kind INTEGER NOT NULL REFERENCES activity_kinds,
  start_ns INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  end_ns INTEGER NOT NULL,
  name INTEGER NOT NULL,
  stream INTEGER NOT NULL, -- 0 where there is none, as correlation and graph_node
  correlation INTEGER NOT NULL,
  graph_node INTEGER NOT NULL,
  grid_x INTEGER NOT NULL, grid_y INTEGER NOT NULL, grid_z INTEGER NOT NULL,
  block_x INTEGER NOT NULL, block_y INTEGER NOT NULL, block_z INTEGER NOT NULL,
  registers INTEGER NOT NULL,
  static_shared_bytes INTEGER NOT NULL,
  dynamic_shared_bytes INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY (pass_id, kind, start_ns, ordinal),
  FOREIGN KEY (pass_id, name) REFERENCES names
) STRICT, WITHOUT ROWID;

-- How long the longest row of a kind is: what overlaps a window starts at most so much before it, so the primary key finds it.
CREATE TABLE activity_spans (
  pass_id INTEGER NOT NULL REFERENCES passes ON DELETE CASCADE,
  kind INTEGER NOT NULL REFERENCES activity_kinds,
  activity_rows INTEGER NOT NULL,
  longest_ns INTEGER NOT NULL,
  PRIMARY KEY (pass_id, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
  job_id INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE,
  seq INTEGER NOT NULL, -- from 1 within the job
  at_ns INTEGER NOT NULL,
  type TEXT NOT NULL,
  data TEXT NOT NULL CHECK (json_valid(data)),
  at TEXT AS (strftime('%Y-%m-%dT%H:%M:%S', at_ns / 1000000000, 'unixepoch') || printf('.%09dZ', at_ns % 1000000000)),
  PRIMARY KEY (job_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE tokens (
  hash TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  created_ns INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 1;
