UPDATE jobs SET state = 'running', started_ns = coalesce(started_ns, :now), listing = NULL
WHERE id = :job AND state <> 'running'
RETURNING id
