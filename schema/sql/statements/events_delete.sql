DELETE FROM events WHERE (job_id, seq) IN (SELECT job_id, seq FROM events WHERE job_id = :job LIMIT :batch)
