-- Stores in suite run :run the conditions (device, driver, clock setting, commit) that the workers of its first job with a
-- committed pass have reported.
UPDATE suite_runs SET (device_name, driver, clock_setting, git_commit) = (
  SELECT device_row.name, device_row.driver, coalesce(device_row.clock_setting, iif(device_row.sm_clock_max_mhz > 0, printf(
    'SM at most %.0f MHz, memory at most %.0f MHz', device_row.sm_clock_max_mhz, device_row.memory_clock_max_mhz), NULL)),
      pass.git_commit
  FROM passes pass JOIN devices device_row ON device_row.id = pass.device_id WHERE pass.job_id = :job ORDER BY pass.ordinal,
    pass.run_id LIMIT 1)
WHERE id = :run AND device_name IS NULL
