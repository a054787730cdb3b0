DELETE FROM names WHERE pass_id = :pass
