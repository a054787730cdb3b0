SELECT count(*) FILTER (WHERE state = 'queued'), count(*) FILTER (WHERE state = 'running')
FROM jobs WHERE state IN ('queued', 'running')
