UPDATE jobs SET events = events + 1 WHERE id = :job RETURNING events
