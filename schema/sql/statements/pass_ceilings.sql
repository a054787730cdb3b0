-- Sets the pass's ceilings_id to the newest ceilings that were measured on its device with the same driver and clocks.
UPDATE passes SET ceilings_id = (
  SELECT cp.id FROM devices device_row CROSS JOIN devices cd ON cd.identity = device_row.identity
    AND cd.driver IS device_row.driver
      AND cd.sm_clock_max_mhz IS device_row.sm_clock_max_mhz AND cd.memory_clock_max_mhz IS device_row.memory_clock_max_mhz
      AND cd.clock_setting IS device_row.clock_setting
    CROSS JOIN passes cp ON cp.device_id = cd.id AND cp.measures_ceilings = 1 AND cp.state = 'completed' AND cp.run_id = (
      SELECT max(run_id) FROM passes np WHERE np.device_id = cd.id AND np.measures_ceilings = 1 AND np.state = 'completed')
  WHERE device_row.id = passes.device_id
  ORDER BY cp.run_id DESC LIMIT 1)
WHERE id = :pass
