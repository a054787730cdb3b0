-- Returns the newest ceilings of each device and driver, with their rates and the conditions of the measurement.
-- Parameter: :device limits the result to one device (NULL: all devices).
SELECT json_object(
  'job', ceiling_pass.job, 'run', ceiling_pass.run, 'device', ceiling_pass.device, 'device_name', ceiling_pass.device_name,
    'device_identity', ceiling_pass.device_identity,
  'driver', ceiling_pass.driver, 'at', ceiling_pass.at, 'age_s', ceiling_pass.age_s, 'commit', ceiling_pass.git_commit,
    'sm_clock_max_mhz', ceiling_pass.sm_clock_max_mhz,
  'memory_clock_max_mhz', ceiling_pass.memory_clock_max_mhz,
  'stale', stored_json(iif(ceiling_pass.stale_reason IS NULL, 'false', 'true')), 'stale_reason', ceiling_pass.stale_reason,
  'disturbed_reason', ceiling_pass.disturbed_reason,
  'rates', stored_json((
    SELECT json_group_array(json_object('name', name, 'value', value, 'reason', reason))
    FROM measurements WHERE pass_id = ceiling_pass.pass_id AND name GLOB '*_per_s')),
  'conditions', stored_json((
    SELECT json_group_array(json_object('name', name, 'value', value, 'reason', reason))
    FROM measurements
    WHERE pass_id = ceiling_pass.pass_id
      AND (name GLOB '*clock*_mhz' OR name IN ('temperature_c_most', 'power_w_most') OR name GLOB 'throttled_*'
        OR name GLOB 'other_process*'))))
FROM v_ceiling_passes ceiling_pass
WHERE :device IS NULL OR ceiling_pass.device = :device
ORDER BY ceiling_pass.run DESC
