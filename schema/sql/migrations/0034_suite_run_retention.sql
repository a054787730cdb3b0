DROP INDEX suite_runs_by_state;
CREATE INDEX suite_runs_by_state ON suite_runs (state, finished_ns);
CREATE INDEX suite_runs_comparable ON suite_runs (suite, device)
  WHERE state = 'completed' AND quarantine_reason IS NULL AND against_request IS NULL;
PRAGMA user_version = 34;
