UPDATE epochs SET suspect = 1,
  suspect_reason = printf('an epoch of %.6g ms is faster than its floor of %.6g ms, the least time for %.6g operations and %.6g bytes',
                          epoch_ms, floor_ms, floor_operations, floor_bytes)
FROM (SELECT m.value AS floor_ms, r.floor_operations, r.floor_bytes
      FROM measurements m JOIN passes p ON p.id = m.pass_id JOIN runs r ON r.id = p.run_id
      WHERE m.pass_id = :pass AND m.name = 'floor_ms')
WHERE pass_id = :pass AND epoch_ms < floor_ms
