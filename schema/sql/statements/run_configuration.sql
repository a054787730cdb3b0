SELECT configuration.id
FROM runs run CROSS JOIN jobs job ON job.id = run.job_id
  CROSS JOIN configurations configuration ON configuration.workload = run.workload AND configuration.variant = run.variant
    AND configuration.nondefault_params = run.nondefault_params
    AND configuration.device = job.device
WHERE run.id = :run
