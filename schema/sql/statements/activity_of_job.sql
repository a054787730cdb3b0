SELECT id FROM passes WHERE job_id = :job AND activity_kept = 1 LIMIT 1
