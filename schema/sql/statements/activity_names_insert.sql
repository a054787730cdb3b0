INSERT INTO names (pass_id, ordinal, name) VALUES (:pass, :ordinal, :name)
