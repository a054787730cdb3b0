-- Times of single launches, of jobs that measure one kernel.

CREATE TABLE samples (
  pass_id INTEGER NOT NULL REFERENCES passes ON DELETE CASCADE,
  mode TEXT NOT NULL CHECK (mode IN ('cold', 'warm')), -- what the caches hold when the launch begins
  ordinal INTEGER NOT NULL, -- counts from 0 within the mode, in the order of time
  device_us REAL, -- warm: mean of launches that follow one another
  PRIMARY KEY (pass_id, mode, ordinal)
) STRICT, WITHOUT ROWID;

CREATE VIEW v_samples AS
SELECT p.job_id AS job, p.run_id AS run, r.workload, r.variant, r.params ->> '$.dtype' AS dtype, r.params -> '$.shape' AS shape, r.engine,
  j.device, p.finished_at AS at, p.name AS pass, s.mode, s.ordinal, s.device_us
FROM samples s JOIN passes p ON p.id = s.pass_id JOIN runs r ON r.id = p.run_id JOIN jobs j ON j.id = p.job_id;

PRAGMA user_version = 3;
