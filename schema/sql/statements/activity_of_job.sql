SELECT id FROM passes WHERE job_id = :job AND activity_stored = 1 LIMIT 1
