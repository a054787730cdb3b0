INSERT INTO runs (job_id, ordinal, workload, variant, params, nondefault_params)
VALUES (:job, :ordinal, :workload, :variant, :params, coalesce(:nondefault_params, :params)) RETURNING id
