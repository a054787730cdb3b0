INSERT INTO measurements (pass_id, name, value, reason) VALUES (:pass, :name, :value, :reason)
