-- :before :after. The rates of two ceilings jobs that a throttled or shared device changes first. Columns: name, before, after.
SELECT b.name, b.value, a.value
FROM passes p JOIN measurements b ON b.pass_id = p.id
  JOIN passes q ON q.job_id = :after AND q.ordinal = 0 JOIN measurements a ON a.pass_id = q.id AND a.name = b.name
WHERE p.job_id = :before AND p.ordinal = 0
  AND b.name IN ('dram_read_bytes_per_s', 'dram_copy_bytes_per_s', 'fp32_operations_per_s')
  AND b.value > 0 AND a.value > 0
