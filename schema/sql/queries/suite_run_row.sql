-- :run. Columns: definition, state, suite, device, against, against_run, elapsed ns, jobs_sha256, device_name, driver,
-- clock_setting.
SELECT definition, state, suite, device, against, against_run_id, started_ns, jobs_sha256, device_name, driver, clock_setting
FROM suite_runs WHERE id = :run
