UPDATE passes SET state = 'pending', started_ns = NULL
WHERE state = 'running' AND job_id IN (SELECT id FROM jobs WHERE state IN ('running', 'interrupted'))
