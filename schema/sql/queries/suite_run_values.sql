-- :run. Columns: metric, role, block, value, cycles, why a measured value was dropped, and which
-- other processes used the device; value and cycles are NULL if it was dropped.
SELECT metric, role, block, iif(dropped_reason IS NULL, value, NULL), iif(dropped_reason IS NULL, cycles, NULL),
  iif(value IS NULL, NULL, dropped_reason), other_processes
FROM suite_values WHERE suite_run_id = :run ORDER BY metric, role, block
