-- :run; NULL: all runs.
INSERT OR IGNORE INTO configurations (workload, variant, nondefault_params, device)
SELECT r.workload, r.variant, r.nondefault_params, j.device FROM runs r CROSS JOIN jobs j ON j.id = r.job_id
WHERE r.id BETWEEN coalesce(:run, 0) AND coalesce(:run, 9223372036854775807)
  AND EXISTS (SELECT 1 FROM passes p WHERE p.run_id = r.id AND p.state = 'completed')
