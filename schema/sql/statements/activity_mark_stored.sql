UPDATE passes SET activity_stored = 1 WHERE id = :pass AND activity_stored = 0
