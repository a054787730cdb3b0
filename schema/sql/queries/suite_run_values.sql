-- Returns the values of suite run :run, sorted by metric. Columns: metric, role, block, value, SM cycles, reason why a measured
-- value was dropped, other processes that used the device. The value and the cycles are NULL if the value was dropped.
SELECT metric, role, block, iif(dropped_reason IS NULL, value, NULL), iif(dropped_reason IS NULL, cycles, NULL),
  iif(value IS NULL, NULL, dropped_reason), other_processes
FROM suite_values WHERE suite_run_id = :run ORDER BY metric, role, block
