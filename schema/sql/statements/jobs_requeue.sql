UPDATE jobs SET state = 'queued', started_ns = NULL WHERE state IN ('running', 'interrupted')
