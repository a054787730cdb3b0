INSERT INTO events (job_id, seq, at_ns, type, data) VALUES (:job, :seq, :now, :type, :data)
