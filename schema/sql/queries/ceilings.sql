-- :device. The newest ceilings of each device and driver, with their rates and the conditions of the measurement.
SELECT json_object(
  'job', c.job, 'run', c.run, 'device', c.device, 'device_name', c.device_name, 'device_identity', c.device_identity,
  'driver', c.driver, 'at', c.at, 'age_s', c.age_s, 'commit', c.git_commit, 'sm_clock_max_mhz', c.sm_clock_max_mhz,
  'memory_clock_max_mhz', c.memory_clock_max_mhz,
  'stale', stored_json(iif(c.stale_reason IS NULL, 'false', 'true')), 'stale_reason', c.stale_reason,
  'rates', stored_json((
    SELECT json_group_array(json_object('name', name, 'value', value, 'reason', reason))
    FROM measurements WHERE pass_id = c.pass_id AND name GLOB '*_per_s')),
  'conditions', stored_json((
    SELECT json_group_array(json_object('name', name, 'value', value, 'reason', reason))
    FROM measurements
    WHERE pass_id = c.pass_id
      AND (name GLOB '*clock*_mhz' OR name IN ('temperature_c_most', 'power_w_most') OR name GLOB 'throttled_*'))))
FROM v_ceiling_passes c
WHERE :device IS NULL OR c.device = :device
ORDER BY c.run DESC
