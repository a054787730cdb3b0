INSERT INTO tokens (hash, name, created_ns) VALUES (:hash, :name, :now)
