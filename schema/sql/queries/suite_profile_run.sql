-- :run :role :job_name :variant. The profile of a suite run's job. Columns: its run, engine, parameters, data set's hash, worker's commit,
-- driver, libraries, UUID, duration of the traced iteration in us, SM clock, memory clock, power, throttle reasons, hash of posted code,
-- which is not among the parameters.
SELECT r.id, r.engine, json_remove(r.nondefault_params, '$.source', '$.code_sha256'), r.dataset_sha256, a.git_commit, d.driver,
  json_array(d.properties ->> '$.cudnn', d.properties ->> '$.cublas', d.properties ->> '$.cuda_runtime', d.properties ->> '$.openblas'),
  d.uuid,
  1000.0 * (SELECT value FROM measurements WHERE pass_id = a.id AND name = 'epoch_traced_ms'),
  coalesce((SELECT avg((sm_clock_before_mhz + sm_clock_after_mhz) / 2) FROM epochs WHERE pass_id = t.id AND warmup = 0),
           (SELECT value FROM measurements WHERE pass_id = t.id AND name = 'sm_clock_most_mhz')),
  coalesce((SELECT avg(memory_clock_mhz) FROM epochs WHERE pass_id = t.id AND warmup = 0),
           (SELECT value FROM measurements WHERE pass_id = t.id AND name = 'memory_clock_mhz')),
  coalesce((SELECT avg(power_w) FROM epochs WHERE pass_id = t.id AND warmup = 0),
           (SELECT value FROM measurements WHERE pass_id = t.id AND name = 'power_w_most')),
  (SELECT max(throttle_reasons) FROM epochs WHERE pass_id = t.id AND warmup = 0 AND throttle_reasons <> ''),
  r.nondefault_params ->> '$.code_sha256'
FROM suite_jobs s JOIN runs r ON r.job_id = s.job_id AND r.variant = :variant
  JOIN passes a ON a.run_id = r.id AND a.ordinal = 1 AND a.state = 'completed'
  LEFT JOIN passes t ON t.run_id = r.id AND t.ordinal = 0
  LEFT JOIN devices d ON d.id = a.device_id
WHERE s.suite_run_id = :run AND s.role = :role AND s.job_name = :job_name AND s.state = 'completed'
