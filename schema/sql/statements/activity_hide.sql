UPDATE passes SET activity_kept = 0 WHERE id = :pass AND activity_kept = 1
