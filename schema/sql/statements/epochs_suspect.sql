UPDATE epochs SET suspect = 1,
  suspect_reason = printf('an epoch of %.6g ms is faster than its floor of %.6g ms: %s', epoch_ms, floor_ms, arithmetic)
FROM (SELECT floor_ms, arithmetic FROM v_floors WHERE pass_id = :pass AND cache = 'warm')
WHERE pass_id = :pass AND epoch_ms < floor_ms
