UPDATE passes SET activity_kept = 0 WHERE id = :pass
