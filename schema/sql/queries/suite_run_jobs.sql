-- Returns the jobs of suite run :run. Columns: role, block, job_name, job, state, drop_reason, busy_s, whether a value that the
-- job measured was dropped. The keys of a job's metrics begin with its name and "/"; the character after "/" is "0".
SELECT role, block, job_name, job_id, state, drop_reason, busy_s, EXISTS (
  SELECT 1 FROM suite_values suite_value
  WHERE suite_value.suite_run_id = suite_job.suite_run_id AND suite_value.metric >= suite_job.job_name || '/'
    AND suite_value.metric < suite_job.job_name || '0' AND suite_value.role = suite_job.role
    AND suite_value.block = suite_job.block AND suite_value.value IS NOT NULL AND suite_value.dropped_reason IS NOT NULL)
FROM suite_jobs suite_job WHERE suite_run_id = :run ORDER BY ordinal
