SELECT id FROM passes WHERE run_id = :run AND ordinal = 1 AND activity_kept = 1
