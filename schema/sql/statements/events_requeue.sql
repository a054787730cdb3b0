-- Before jobs_requeue, which counts them
INSERT INTO events (job_id, seq, at_ns, type, data)
SELECT id, events + 1, :now, 'state', '{"state":"queued"}' FROM jobs WHERE state IN ('running', 'interrupted')
