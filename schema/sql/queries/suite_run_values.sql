-- :run. Columns: metric, role, block, value, cycles; value and cycles are NULL if the value was dropped.
SELECT metric, role, block, iif(dropped_reason IS NULL, value, NULL), iif(dropped_reason IS NULL, cycles, NULL)
FROM suite_values WHERE suite_run_id = :run ORDER BY metric, role, block
