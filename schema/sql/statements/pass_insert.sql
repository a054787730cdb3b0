INSERT INTO passes (job_id, run_id, ordinal, name) VALUES (:job, :run, :ordinal, :name)
