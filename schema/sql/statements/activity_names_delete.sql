DELETE FROM names WHERE (pass_id, ordinal) IN (SELECT pass_id, ordinal FROM names WHERE pass_id = :pass LIMIT :batch)
