-- Adds the event `queued` to each job that jobs_requeue will queue again. Executed before jobs_requeue, which increments the
-- number of events.
INSERT INTO events (job_id, seq, at_ns, type, data)
SELECT id, events + 1, :now, 'state', '{"state":"queued"}' FROM jobs WHERE state IN ('running', 'interrupted')
