UPDATE passes SET state = 'running', started_ns = :now WHERE id = :pass
