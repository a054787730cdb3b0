INSERT INTO passes (job_id, run_id, ordinal, name, measures_ceilings)
SELECT :job, id, :ordinal, :name, :ordinal = 0 AND workload = 'ceilings' FROM runs WHERE id = :run
