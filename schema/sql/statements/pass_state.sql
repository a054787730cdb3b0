SELECT p.state, j.state FROM passes p JOIN jobs j ON j.id = p.job_id WHERE p.id = :pass AND p.run_id = :run AND p.job_id = :job
