SELECT 1 FROM passes WHERE id = :pass AND activity_stored = 1 AND activity_kept = 0
