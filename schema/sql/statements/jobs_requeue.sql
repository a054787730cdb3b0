UPDATE jobs SET state = 'queued', started_ns = NULL, events = events + 1 WHERE state IN ('running', 'interrupted')
