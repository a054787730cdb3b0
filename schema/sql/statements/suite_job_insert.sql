INSERT INTO suite_jobs (suite_run_id, ordinal, role, block, job_name, job_id, state)
VALUES (:run, (SELECT count(*) FROM suite_jobs WHERE suite_run_id = :run), :role, :block, :job_name, :job, 'submitted')
ON CONFLICT (suite_run_id, role, block, job_name) DO NOTHING
