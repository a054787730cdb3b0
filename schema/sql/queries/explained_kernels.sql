-- Returns the kernels that the activity pass of run :run traced, and the phases inside them, in the order of execution.
-- Columns from the activity pass: launch, phase (NULL: the row is the whole kernel), time in us, number of launches. Columns
-- from the same kernel in the counters pass: ordinal, metrics [[name, value, reason]...], number of executed instructions,
-- number of those that convert between FP16 and FP32. If a kernel has phases, only its first phase has metrics and instructions.
SELECT launch, phase, us, launches, counted_ordinal,
  iif(is_first, (SELECT json_group_array(json_array(metric, value, reason)) FROM kernel_metrics WHERE kernel_id = counted), NULL),
  iif(is_first, (
    SELECT iif(count(opcode) > 0, total(counts ->> '$.inst_executed'), NULL)
    FROM instructions WHERE kernel_id = counted), NULL),
  iif(is_first, ( -- HADD2.F32 that adds RZ converts from FP16
    SELECT iif(count(opcode) > 0, total(counts ->> '$.inst_executed') FILTER (
      WHERE opcode GLOB 'F2F*F16*' OR (opcode GLOB 'HADD2.F32*' AND sass GLOB '*RZ,*')), NULL)
    FROM instructions WHERE kernel_id = counted), NULL)
FROM (
  SELECT kernel.ordinal, coalesce(kernel.launch, kernel.name) AS launch, kernel_phase.name AS phase, kernel_phase.position,
    kernel.total_us * coalesce(kernel_phase.share_ratio, 1) AS us, kernel.launches, counted_kernel.ordinal AS counted_ordinal,
      counted_kernel.id AS counted,
    kernel_phase.position IS NULL OR kernel_phase.position = (
      SELECT min(position) FROM phases WHERE kernel_id = kernel.id AND share_ratio IS NOT NULL) AS is_first
  FROM passes activity_pass JOIN kernels kernel ON kernel.pass_id = activity_pass.id
    LEFT JOIN phases kernel_phase ON kernel_phase.kernel_id = kernel.id AND kernel_phase.share_ratio IS NOT NULL
    LEFT JOIN kernels counted_kernel ON counted_kernel.id = (
      SELECT min(other.id) FROM passes counters_pass JOIN kernels other ON other.pass_id = counters_pass.id
      WHERE counters_pass.run_id = activity_pass.run_id AND counters_pass.ordinal = 2 AND other.name = kernel.name
        AND other.launch IS kernel.launch)
  WHERE activity_pass.run_id = :run AND activity_pass.ordinal = 1 AND kernel.total_us > 0)
ORDER BY ordinal, position
