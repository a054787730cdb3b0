-- :run. Columns: role, block, job_name, job, state, drop_reason, busy_s.
SELECT role, block, job_name, job_id, state, drop_reason, busy_s FROM suite_jobs WHERE suite_run_id = :run ORDER BY ordinal
