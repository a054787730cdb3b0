SELECT 1 FROM runs WHERE id = :run
