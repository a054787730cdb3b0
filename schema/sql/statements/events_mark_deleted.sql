UPDATE jobs SET events_kept = 0 WHERE id = :job
