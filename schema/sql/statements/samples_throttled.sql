-- Marks the samples of the pass as suspect if the sensors, which are read after the samples, reported throttling.
UPDATE samples SET suspect = 1,
  suspect_reason = (
    SELECT printf('GPU throttled during timing (%s)', group_concat(replace(replace(replace(
      replace(replace(name, 'throttled_by_', ''), '_ratio', ''), 'sw_', 'SW '), 'hw_', 'HW '), '_', ' '), ', '))
    FROM measurements WHERE pass_id = :pass AND name GLOB 'throttled_by_*_ratio')
WHERE pass_id = :pass AND suspect = 0
  AND EXISTS (SELECT 1 FROM measurements WHERE pass_id = :pass AND name = 'throttled_ratio' AND value > 0)
