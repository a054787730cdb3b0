-- :run. Columns: definition, state, suite, device, against, against_run, started ns (Unix time), jobs_sha256, device_name, driver,
-- clock_setting, against_request, order_seed.
SELECT definition, state, suite, device, against, against_run_id, started_ns, jobs_sha256, device_name, driver, clock_setting,
  against_request, order_seed
FROM suite_runs WHERE id = :run
