-- :run. Columns: role, block, job_name, job, state, drop_reason, busy_s, whether a value that the job measured was dropped. A
-- metric begins with the name of its job and "/", after which "0" is the next character.
SELECT role, block, job_name, job_id, state, drop_reason, busy_s, EXISTS (
  SELECT 1 FROM suite_values v
  WHERE v.suite_run_id = s.suite_run_id AND v.metric >= s.job_name || '/' AND v.metric < s.job_name || '0' AND v.role = s.role
    AND v.block = s.block AND v.value IS NOT NULL AND v.dropped_reason IS NOT NULL)
FROM suite_jobs s WHERE suite_run_id = :run ORDER BY ordinal
