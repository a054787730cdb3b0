UPDATE passes SET activity_kept = 0, activity_stored = 0 WHERE id = :pass
