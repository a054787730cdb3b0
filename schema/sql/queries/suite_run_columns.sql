-- Returns suite run :run. Columns: definition, state, suite, device, against, against_run, time of the start in ns since 1970,
-- jobs_sha256, device_name, driver, clock_setting, against_request, order_seed.
SELECT definition, state, suite, device, against, against_run_id, started_ns, jobs_sha256, device_name, driver, clock_setting,
  against_request, order_seed
FROM suite_runs WHERE id = :run
