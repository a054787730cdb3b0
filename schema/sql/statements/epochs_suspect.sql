UPDATE epochs SET suspect = 1,
  suspect_reason = printf('%s is faster than its floor of %s: %s', duration_text(epoch_ms * 1000, floor_ms * 1000),
                          duration_text(floor_ms * 1000, epoch_ms * 1000), work_text(amount, work, amount_per_s))
FROM (SELECT floor_ms, amount, work, amount_per_s FROM v_floors WHERE pass_id = :pass AND cache = 'warm')
WHERE pass_id = :pass AND epoch_ms < floor_ms
