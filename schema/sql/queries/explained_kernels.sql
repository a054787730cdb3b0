-- Returns the kernels that the activity pass of run :run has traced, in the order of execution: one row for each phase of a
-- kernel, or one row for a kernel without phases. Columns from the activity pass: launch, phase (NULL: the row is the whole
-- kernel), time in us, number of launches. Columns from the same kernel in the counters pass: ordinal, metrics [[name, value,
-- reason]...], number of executed instructions, number of executed instructions that convert between FP16 and FP32. If a kernel
-- has phases, only the row of its first phase has metrics and instructions. Last columns: number of kernels in the counters pass
-- that the row stands for; reason why there is none.
SELECT launch, phase, us, launches, counted_ordinal,
  iif(is_first, (SELECT json_group_array(json_array(metric, value, reason)) FROM kernel_metrics WHERE kernel_id = counted), NULL),
  iif(is_first, (
    SELECT iif(count(opcode) > 0, total(counts ->> '$.inst_executed'), NULL)
    FROM instructions WHERE kernel_id = counted), NULL),
  iif(is_first, ( -- HADD2.F32 that adds RZ converts from FP16
    SELECT iif(count(opcode) > 0, total(counts ->> '$.inst_executed') FILTER (
      WHERE opcode GLOB 'F2F*F16*' OR (opcode GLOB 'HADD2.F32*' AND sass GLOB '*RZ,*')), NULL)
    FROM instructions WHERE kernel_id = counted), NULL),
  counted_kernels, reason
FROM (
  SELECT traced.ordinal, coalesce(kernel.launch, kernel.name) AS launch, traced.phase, traced.position, traced.us, kernel.launches,
    counted_kernel.ordinal AS counted_ordinal, counted_kernel.id AS counted,
    traced.counted_kernels, traced.reason, traced.position IS NULL OR traced.position = (
      SELECT min(position) FROM phases WHERE kernel_id = kernel.id AND share_ratio IS NOT NULL) AS is_first
  FROM v_traced_kernels traced JOIN kernels kernel ON kernel.id = traced.kernel
    LEFT JOIN kernels counted_kernel ON counted_kernel.id = traced.counted
  WHERE traced.run = :run AND kernel.total_us > 0)
ORDER BY ordinal, position
