-- :run :job. Stores the conditions that the workers of the suite run's first job with a committed pass reported.
UPDATE suite_runs SET (device_name, driver, clock_setting, git_commit) = (
  SELECT d.name, d.driver, coalesce(d.clock_setting, iif(d.sm_clock_max_mhz > 0, printf(
    'SM at most %.0f MHz, memory at most %.0f MHz', d.sm_clock_max_mhz, d.memory_clock_max_mhz), NULL)), p.git_commit
  FROM passes p JOIN devices d ON d.id = p.device_id WHERE p.job_id = :job ORDER BY p.ordinal, p.run_id LIMIT 1)
WHERE id = :run AND device_name IS NULL
