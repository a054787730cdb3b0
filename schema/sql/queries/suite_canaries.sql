-- Returns the rates that change first when the device is throttled or shared, as the ceilings jobs :before and :after have
-- measured them. Columns: name, rate of :before, rate of :after.
SELECT before.name, before.value, after.value
FROM passes pass_before JOIN measurements before ON before.pass_id = pass_before.id
  JOIN passes pass_after ON pass_after.job_id = :after AND pass_after.ordinal = 0 JOIN measurements after
    ON after.pass_id = pass_after.id AND after.name = before.name
WHERE pass_before.job_id = :before AND pass_before.ordinal = 0
  AND before.name IN ('dram_read_bytes_per_s', 'dram_copy_bytes_per_s', 'fp32_operations_per_s')
  AND before.value > 0 AND after.value > 0
