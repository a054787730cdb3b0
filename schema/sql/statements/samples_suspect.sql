UPDATE samples SET suspect = 1,
  suspect_reason = printf('%s with a %s cache is faster than its floor of %s: %s',
                          duration_text(device_us, floor_ms * 1000), mode, duration_text(floor_ms * 1000, device_us),
                          work_text(amount, work, amount_per_s))
FROM (SELECT cache, floor_ms, amount, work, amount_per_s FROM v_floors WHERE pass_id = :pass)
WHERE pass_id = :pass AND mode = cache AND device_us < floor_ms * 1000
