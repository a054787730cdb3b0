-- Sets the pass's ceilings_id to the newest ceilings that were measured on its device with the same driver and clocks.
UPDATE passes SET ceilings_id = (
  SELECT cp.id FROM devices d CROSS JOIN runs cr ON cr.workload = 'ceilings'
    CROSS JOIN passes cp ON cp.run_id = cr.id AND cp.ordinal = 0 AND cp.state = 'completed'
    CROSS JOIN devices cd ON cd.id = cp.device_id
  WHERE d.id = passes.device_id AND cd.identity = d.identity AND cd.driver IS d.driver
    AND cd.sm_clock_max_mhz IS d.sm_clock_max_mhz AND cd.memory_clock_max_mhz IS d.memory_clock_max_mhz
    AND cd.clock_setting IS d.clock_setting
  ORDER BY cr.id DESC LIMIT 1)
WHERE id = :pass
