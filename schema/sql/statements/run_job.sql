SELECT job_id FROM runs WHERE id = :run
