-- Marks the samples of the pass if the sensors, which are read after them, reported a throttled device.
UPDATE samples SET suspect = 1,
  suspect_reason = (
    SELECT printf('the device was slowed down while it was timed: %s',
                  group_concat(replace(replace(name, 'throttled_by_', ''), '_ratio', ''), ', '))
    FROM measurements WHERE pass_id = :pass AND name GLOB 'throttled_by_*_ratio')
WHERE pass_id = :pass AND suspect = 0
  AND EXISTS (SELECT 1 FROM measurements WHERE pass_id = :pass AND name = 'throttled_ratio' AND value > 0)
