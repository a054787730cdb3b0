-- Returns an unfinished job of a suite run that has ended. The job's Idempotency-Key contains the id of the suite run
-- ("suite 17 block 0 train"), because a suite run can end after it has submitted a job and before suite_jobs contains the job.
SELECT id FROM jobs
WHERE state IN ('queued', 'running', 'interrupted') AND idempotency_key GLOB 'suite [0-9]*' AND NOT EXISTS (
  SELECT 1 FROM suite_runs suite_run
  WHERE suite_run.id = CAST(substr(jobs.idempotency_key, 7) AS INTEGER) AND suite_run.state IN ('queued', 'running'))
LIMIT 1
