SELECT c.id
FROM runs r CROSS JOIN jobs j ON j.id = r.job_id
  CROSS JOIN configurations c ON c.workload = r.workload AND c.variant = r.variant AND c.nondefault_params = r.nondefault_params
    AND c.device = j.device
WHERE r.id = :run
