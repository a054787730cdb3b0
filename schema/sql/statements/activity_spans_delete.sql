DELETE FROM activity_spans WHERE pass_id = :pass
