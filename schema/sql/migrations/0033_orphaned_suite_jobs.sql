-- The transaction that ends a suite run also ends the run's submitted jobs in suite_jobs.
UPDATE suite_jobs SET state = 'cancelled'
WHERE state = 'submitted' AND suite_run_id IN (SELECT id FROM suite_runs WHERE state NOT IN ('queued', 'running'));
DROP INDEX suite_jobs_submitted;
PRAGMA user_version = 33;
