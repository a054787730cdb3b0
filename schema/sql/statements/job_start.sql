UPDATE jobs SET state = 'running', started_ns = coalesce(started_ns, :now) WHERE id = :job
