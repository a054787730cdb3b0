DELETE FROM tokens WHERE name = :name
