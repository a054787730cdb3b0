-- Adds events of suite runs, and suite runs that measure their baseline themselves.
ALTER TABLE suite_runs ADD COLUMN events INTEGER NOT NULL DEFAULT 0;
ALTER TABLE suite_runs ADD COLUMN events_kept INTEGER NOT NULL DEFAULT 1 CHECK (events_kept IN (0, 1));
ALTER TABLE suite_runs ADD COLUMN against_request TEXT CHECK (against_request IS NULL OR json_valid(against_request));
ALTER TABLE suite_runs ADD COLUMN order_seed INTEGER;
CREATE INDEX suite_runs_with_events ON suite_runs (finished_ns) WHERE events_kept = 1;
CREATE TABLE suite_events (
  suite_run_id INTEGER NOT NULL REFERENCES suite_runs ON DELETE CASCADE,
  seq INTEGER NOT NULL, -- number of the event, from 1 within the suite run
  at_ns INTEGER NOT NULL,
  type TEXT NOT NULL,
  data TEXT NOT NULL CHECK (json_valid(data)),
  at TEXT AS (strftime('%Y-%m-%dT%H:%M:%S', at_ns / 1000000000, 'unixepoch') || printf('.%09dZ', at_ns % 1000000000)),
  PRIMARY KEY (suite_run_id, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE suite_jobs_22 ( -- the jobs of a suite run; kept when retention deletes the jobs
  suite_run_id INTEGER NOT NULL REFERENCES suite_runs ON DELETE CASCADE,
  ordinal INTEGER NOT NULL, -- number of the job in the order of submission, from 0
  role TEXT NOT NULL CHECK (role IN ('canary_before', 'block', 'baseline', 'confirmation', 'canary_after', 'profile',
    'baseline_profile')), -- baseline...: jobs that measure the baseline
  block INTEGER NOT NULL, -- number of the block, from 0 within the role
  job_name TEXT NOT NULL, -- name of the job in the definition; "ceilings" for a canary
  job_id INTEGER REFERENCES jobs ON DELETE SET NULL,
  state TEXT NOT NULL CHECK (state IN ('submitted', 'completed', 'failed', 'cancelled')),
  drop_reason TEXT, -- why the values of the job are not used; NULL: they are used
  busy_s REAL, -- time from the job's start to its end
  PRIMARY KEY (suite_run_id, ordinal),
  UNIQUE (suite_run_id, role, block, job_name)
) STRICT, WITHOUT ROWID;
INSERT INTO suite_jobs_22 (suite_run_id, ordinal, role, block, job_name, job_id, state, drop_reason, busy_s)
SELECT suite_run_id, ordinal, role, block, job_name, job_id, state, drop_reason, busy_s
FROM suite_jobs;
DROP TABLE suite_jobs;
ALTER TABLE suite_jobs_22 RENAME TO suite_jobs;
CREATE INDEX suite_jobs_by_job ON suite_jobs (job_id) WHERE job_id IS NOT NULL;
CREATE INDEX suite_jobs_submitted ON suite_jobs (state) WHERE state = 'submitted';
CREATE TABLE suite_values_22 ( -- the values from which verdicts are computed
  suite_run_id INTEGER NOT NULL REFERENCES suite_runs ON DELETE CASCADE,
  metric TEXT NOT NULL, -- "train/fp16/epoch_ms_median": job, variant, metric
  role TEXT NOT NULL CHECK (role IN ('block', 'baseline', 'confirmation')),
  block INTEGER NOT NULL,
  value REAL,
  cycles REAL, -- SM cycles: the time multiplied by the SM clock that was read nearest to it
  dropped_reason TEXT, -- why the value is not used
  PRIMARY KEY (suite_run_id, metric, role, block)
) STRICT, WITHOUT ROWID;
INSERT INTO suite_values_22 (suite_run_id, metric, role, block, value, cycles, dropped_reason)
SELECT suite_run_id, metric, role, block, value, cycles, dropped_reason
FROM suite_values;
DROP TABLE suite_values;
ALTER TABLE suite_values_22 RENAME TO suite_values;
PRAGMA user_version = 22;
