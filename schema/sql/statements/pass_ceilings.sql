-- Sets the pass's ceilings_id to the newest ceilings that were measured on its device with the same driver and clocks.
UPDATE passes SET ceilings_id = (
  SELECT ceilings_pass.id
  FROM devices device_row CROSS JOIN devices equal_device ON equal_device.identity = device_row.identity
      AND equal_device.driver IS device_row.driver AND equal_device.sm_clock_max_mhz IS device_row.sm_clock_max_mhz
      AND equal_device.memory_clock_max_mhz IS device_row.memory_clock_max_mhz
      AND equal_device.clock_setting IS device_row.clock_setting
    CROSS JOIN passes ceilings_pass ON ceilings_pass.device_id = equal_device.id AND ceilings_pass.measures_ceilings = 1
      AND ceilings_pass.state = 'completed' AND ceilings_pass.run_id = (
        SELECT max(run_id) FROM passes newest_pass
        WHERE newest_pass.device_id = equal_device.id AND newest_pass.measures_ceilings = 1 AND newest_pass.state = 'completed')
  WHERE device_row.id = passes.device_id
  ORDER BY ceilings_pass.run_id DESC LIMIT 1)
WHERE id = :pass
