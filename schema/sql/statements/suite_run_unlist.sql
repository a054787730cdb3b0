-- Removes suite run :run from the stored items of its jobs in lists of jobs.
UPDATE jobs SET listing = json_set(listing, '$.suite_run', NULL)
WHERE listing IS NOT NULL AND id IN (SELECT job_id FROM suite_jobs WHERE suite_run_id = :run)
