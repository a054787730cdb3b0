-- Returns the first pass after :after whose floors a migration has removed; no row if there is none.
SELECT pass_id FROM measurements
WHERE pass_id > :after AND name IN ('floor_ms', 'floor_cold_us', 'floor_warm_us')
  AND reason = 'stored before the minimum work was corrected'
ORDER BY pass_id LIMIT 1
