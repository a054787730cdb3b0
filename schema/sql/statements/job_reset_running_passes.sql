UPDATE passes SET state = 'pending', started_ns = NULL WHERE job_id = :job AND state = 'running'
