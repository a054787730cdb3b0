UPDATE samples SET suspect = 1,
  suspect_reason = printf('%.6g us with a %s cache is faster than its floor of %.6g us: %s',
                          device_us, mode, floor_ms * 1000, arithmetic)
FROM (SELECT cache, floor_ms, arithmetic FROM v_floors WHERE pass_id = :pass)
WHERE pass_id = :pass AND mode = cache AND device_us < floor_ms * 1000
