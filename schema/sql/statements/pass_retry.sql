UPDATE passes SET state = 'pending', started_ns = NULL, reason = :reason WHERE id = :pass AND job_id = :job AND state = 'running'
