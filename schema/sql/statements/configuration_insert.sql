-- Adds the configuration of run :run, or of all runs (:run NULL).
INSERT OR IGNORE INTO configurations (workload, variant, nondefault_params, device)
SELECT run.workload, run.variant, run.nondefault_params, job.device FROM runs run CROSS JOIN jobs job ON job.id = run.job_id
WHERE run.id BETWEEN coalesce(:run, 0) AND coalesce(:run, 9223372036854775807)
  AND EXISTS (SELECT 1 FROM passes pass WHERE pass.run_id = run.id AND pass.state = 'completed')
