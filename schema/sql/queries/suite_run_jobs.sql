-- Returns the jobs of suite run :run. Columns: role, block, job_name, job, state, drop_reason, busy_s, whether a value that the
-- job has measured was dropped. The keys of a job's metrics begin with the job's name and "/"; "0" is the character that follows
-- "/" in the order of ASCII, so the name and "0" is an upper bound of these keys.
SELECT role, block, job_name, job_id, state, drop_reason, busy_s, EXISTS (
  SELECT 1 FROM suite_values suite_value
  WHERE suite_value.suite_run_id = suite_job.suite_run_id AND suite_value.metric >= suite_job.job_name || '/'
    AND suite_value.metric < suite_job.job_name || '0' AND suite_value.role = suite_job.role
    AND suite_value.block = suite_job.block AND suite_value.value IS NOT NULL AND suite_value.dropped_reason IS NOT NULL)
FROM suite_jobs suite_job WHERE suite_run_id = :run ORDER BY ordinal
