-- Adds confirming blocks of a measured baseline, and the basis of the estimate of a suite run's duration.
ALTER TABLE suite_runs ADD COLUMN planned_basis TEXT;
CREATE TABLE suite_jobs_25 ( -- the jobs of a suite run; kept when retention deletes the jobs
  suite_run_id INTEGER NOT NULL REFERENCES suite_runs ON DELETE CASCADE,
  ordinal INTEGER NOT NULL, -- number of the job in the order of submission, from 0
  role TEXT NOT NULL CHECK (role IN ('canary_before', 'block', 'baseline', 'confirmation', 'baseline_confirmation',
    'canary_after', 'profile', 'baseline_profile')), -- baseline...: jobs that measure the baseline
  block INTEGER NOT NULL, -- number of the block, from 0 within the role
  job_name TEXT NOT NULL, -- name of the job in the definition; "ceilings" for a canary
  job_id INTEGER REFERENCES jobs ON DELETE SET NULL,
  state TEXT NOT NULL CHECK (state IN ('submitted', 'completed', 'failed', 'cancelled')),
  drop_reason TEXT, -- why the values of the job are not used; NULL: they are used
  busy_s REAL, -- time from the job's start to its end
  PRIMARY KEY (suite_run_id, ordinal),
  UNIQUE (suite_run_id, role, block, job_name)
) STRICT, WITHOUT ROWID;
INSERT INTO suite_jobs_25 (suite_run_id, ordinal, role, block, job_name, job_id, state, drop_reason, busy_s)
SELECT suite_run_id, ordinal, role, block, job_name, job_id, state, drop_reason, busy_s
FROM suite_jobs;
DROP TABLE suite_jobs;
ALTER TABLE suite_jobs_25 RENAME TO suite_jobs;
CREATE INDEX suite_jobs_by_job ON suite_jobs (job_id) WHERE job_id IS NOT NULL;
CREATE INDEX suite_jobs_submitted ON suite_jobs (state) WHERE state = 'submitted';
CREATE TABLE suite_values_25 ( -- the values from which verdicts are computed
  suite_run_id INTEGER NOT NULL REFERENCES suite_runs ON DELETE CASCADE,
  metric TEXT NOT NULL, -- "train/fp16/epoch_ms_median": job, variant, metric
  role TEXT NOT NULL CHECK (role IN ('block', 'baseline', 'confirmation', 'baseline_confirmation')),
  block INTEGER NOT NULL,
  value REAL,
  cycles REAL, -- SM cycles: the time multiplied by the SM clock that was read nearest to it
  dropped_reason TEXT, -- why the value is not used
  PRIMARY KEY (suite_run_id, metric, role, block)
) STRICT, WITHOUT ROWID;
INSERT INTO suite_values_25 (suite_run_id, metric, role, block, value, cycles, dropped_reason)
SELECT suite_run_id, metric, role, block, value, cycles, dropped_reason
FROM suite_values;
DROP TABLE suite_values;
ALTER TABLE suite_values_25 RENAME TO suite_values;
PRAGMA user_version = 25;
