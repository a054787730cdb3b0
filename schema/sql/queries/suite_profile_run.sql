-- Returns the profile of the job :job_name and the variant :variant that suite run :run has measured in the role :role. Columns:
-- run, engine, parameters, SHA-256 of the data set, commit of the worker, driver, libraries, UUID of the device, duration of the
-- traced iteration in us, SM clock, memory clock, power, throttle reasons, SHA-256 of posted code (which is not among the
-- parameters).
SELECT run.id, run.engine, json_remove(run.nondefault_params, '$.source', '$.code_sha256'), run.dataset_sha256,
  activity_pass.git_commit, device_row.driver,
  json_array(device_row.properties ->> '$.cudnn', device_row.properties ->> '$.cublas', device_row.properties ->> '$.cuda_runtime', device_row.properties ->> '$.openblas'),
  device_row.uuid,
  1000.0 * (SELECT value FROM measurements WHERE pass_id = activity_pass.id AND name = 'epoch_traced_ms'),
  coalesce((SELECT avg((sm_clock_before_mhz + sm_clock_after_mhz) / 2) FROM epochs WHERE pass_id = timing_pass.id AND warmup = 0),
           (SELECT value FROM measurements WHERE pass_id = timing_pass.id AND name = 'sm_clock_most_mhz')),
  coalesce((SELECT avg(memory_clock_mhz) FROM epochs WHERE pass_id = timing_pass.id AND warmup = 0),
           (SELECT value FROM measurements WHERE pass_id = timing_pass.id AND name = 'memory_clock_mhz')),
  coalesce((SELECT avg(power_w) FROM epochs WHERE pass_id = timing_pass.id AND warmup = 0),
           (SELECT value FROM measurements WHERE pass_id = timing_pass.id AND name = 'power_w_most')),
  (SELECT max(throttle_reasons) FROM epochs WHERE pass_id = timing_pass.id AND warmup = 0 AND throttle_reasons <> ''),
  run.nondefault_params ->> '$.code_sha256'
FROM suite_jobs suite_job JOIN runs run ON run.job_id = suite_job.job_id AND run.variant = :variant
  JOIN passes activity_pass ON activity_pass.run_id = run.id AND activity_pass.ordinal = 1 AND activity_pass.state = 'completed'
  LEFT JOIN passes timing_pass ON timing_pass.run_id = run.id AND timing_pass.ordinal = 0
  LEFT JOIN devices device_row ON device_row.id = activity_pass.device_id
WHERE suite_job.suite_run_id = :run AND suite_job.role = :role AND suite_job.job_name = :job_name
  AND suite_job.state = 'completed'
