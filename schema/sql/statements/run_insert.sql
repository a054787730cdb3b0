INSERT INTO runs (job_id, ordinal, workload, variant, params) VALUES (:job, :ordinal, :workload, :variant, :params) RETURNING id
