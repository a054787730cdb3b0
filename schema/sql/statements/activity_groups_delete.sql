DELETE FROM activity_groups WHERE pass_id = :pass
