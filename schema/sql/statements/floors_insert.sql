-- Stores the floors of pass :pass as measurements. Epochs run back to back, so their floor assumes warm caches.
INSERT INTO measurements (pass_id, name, value, reason)
SELECT pass_id, 'floor_ms', floor_ms, reason FROM v_floors
WHERE pass_id = :pass AND cache = 'warm' AND EXISTS (SELECT 1 FROM epochs WHERE pass_id = :pass)
UNION ALL
SELECT pass_id, 'floor_' || cache || '_us', floor_ms * 1000, reason FROM v_floors
WHERE pass_id = :pass AND EXISTS (SELECT 1 FROM samples WHERE pass_id = :pass AND mode = cache)
