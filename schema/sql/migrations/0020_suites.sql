-- Adds runs of regression suites.
CREATE TABLE suite_runs ( -- runs of regression suites
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  suite TEXT NOT NULL,
  definition TEXT NOT NULL CHECK (json_valid(definition)), -- the definition with all defaults filled in
  definition_sha256 TEXT NOT NULL,
  jobs_sha256 TEXT NOT NULL CHECK (json_valid(jobs_sha256)), -- {name of a job: hash of its runs' workloads, variants and parameters}
  device TEXT NOT NULL,
  against TEXT, -- name of the baseline; NULL: the rolling baseline
  against_run_id INTEGER, -- the suite run of the named baseline
  baseline_runs TEXT CHECK (baseline_runs IS NULL OR json_valid(baseline_runs)), -- ids of the suite runs whose values are the baseline; NULL: not judged yet
  state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'completed', 'failed', 'cancelled')),
  verdict TEXT CHECK (verdict IN ('faster', 'same', 'slower', 'inconclusive', 'incomparable')),
  reason TEXT, -- reason of the verdict, or why the run failed
  quarantine_reason TEXT, -- why the values of the run can't be trusted; NULL: they can be
  created_ns INTEGER NOT NULL,
  started_ns INTEGER,
  finished_ns INTEGER,
  device_name TEXT, -- this and the next three columns: reported by the workers of the run's first job
  driver TEXT,
  clock_setting TEXT,
  git_commit TEXT,
  planned_s REAL, -- duration estimated when the run was requested; NULL: unknown
  planned_jobs INTEGER NOT NULL,
  idempotency_key TEXT UNIQUE,
  body_sha256 TEXT,
  listing TEXT CHECK (listing IS NULL OR json_valid(listing)), -- the item in lists of suite runs
  created_at TEXT AS (
    strftime('%Y-%m-%dT%H:%M:%S', created_ns / 1000000000, 'unixepoch') || printf('.%09dZ', created_ns % 1000000000)),
  started_at TEXT AS (
    strftime('%Y-%m-%dT%H:%M:%S', started_ns / 1000000000, 'unixepoch') || printf('.%09dZ', started_ns % 1000000000)),
  finished_at TEXT AS (
    strftime('%Y-%m-%dT%H:%M:%S', finished_ns / 1000000000, 'unixepoch') || printf('.%09dZ', finished_ns % 1000000000))
) STRICT;
CREATE INDEX suite_runs_by_suite ON suite_runs (suite);
CREATE INDEX suite_runs_by_success ON suite_runs (suite, device) WHERE state = 'completed';
CREATE INDEX suite_runs_by_state ON suite_runs (state);

CREATE TABLE suite_jobs ( -- the jobs of a suite run; kept when retention deletes the jobs
  suite_run_id INTEGER NOT NULL REFERENCES suite_runs ON DELETE CASCADE,
  ordinal INTEGER NOT NULL, -- number of the job in the order of submission, from 0
  role TEXT NOT NULL CHECK (role IN ('canary_before', 'block', 'confirmation', 'canary_after', 'profile')),
  block INTEGER NOT NULL, -- number of the block, from 0 within the role
  job_name TEXT NOT NULL, -- name of the job in the definition; "ceilings" for a canary
  job_id INTEGER REFERENCES jobs ON DELETE SET NULL,
  state TEXT NOT NULL CHECK (state IN ('submitted', 'completed', 'failed', 'cancelled')),
  drop_reason TEXT, -- why the values of the job are not used; NULL: they are used
  busy_s REAL, -- time from the job's start to its end
  PRIMARY KEY (suite_run_id, ordinal),
  UNIQUE (suite_run_id, role, block, job_name)
) STRICT, WITHOUT ROWID;
CREATE INDEX suite_jobs_by_job ON suite_jobs (job_id) WHERE job_id IS NOT NULL;
CREATE INDEX suite_jobs_submitted ON suite_jobs (state) WHERE state = 'submitted';

CREATE TABLE suite_values ( -- the values from which verdicts are computed
  suite_run_id INTEGER NOT NULL REFERENCES suite_runs ON DELETE CASCADE,
  metric TEXT NOT NULL, -- "train/fp16/epoch_ms_median": job, variant, metric
  role TEXT NOT NULL CHECK (role IN ('block', 'confirmation')),
  block INTEGER NOT NULL,
  value REAL,
  cycles REAL, -- SM cycles: the time multiplied by the SM clock that was read nearest to it
  dropped_reason TEXT, -- why the value is not used
  PRIMARY KEY (suite_run_id, metric, role, block)
) STRICT, WITHOUT ROWID;

CREATE TABLE suite_verdicts (
  suite_run_id INTEGER NOT NULL REFERENCES suite_runs ON DELETE CASCADE,
  metric TEXT NOT NULL,
  verdict TEXT NOT NULL CHECK (verdict IN ('faster', 'same', 'slower', 'inconclusive', 'incomparable')),
  method_version INTEGER NOT NULL,
  judgement TEXT NOT NULL CHECK (json_valid(judgement)), -- all numbers of the judgement
  causes TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(causes)),
  PRIMARY KEY (suite_run_id, metric)
) STRICT, WITHOUT ROWID;

CREATE TABLE baselines ( -- named baselines: suite runs with whose values later runs are compared; immutable
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  suite TEXT NOT NULL,
  name TEXT NOT NULL,
  suite_run_id INTEGER NOT NULL REFERENCES suite_runs,
  created_ns INTEGER NOT NULL,
  created_at TEXT AS (
    strftime('%Y-%m-%dT%H:%M:%S', created_ns / 1000000000, 'unixepoch') || printf('.%09dZ', created_ns % 1000000000)),
  UNIQUE (suite, name)
) STRICT;
CREATE INDEX baselines_by_run ON baselines (suite_run_id);
CREATE TRIGGER baselines_immutable BEFORE UPDATE ON baselines BEGIN
  SELECT raise(ABORT, 'a baseline is immutable');
END;
PRAGMA user_version = 20;
