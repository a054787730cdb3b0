-- :run. The kernels that the activity pass of a run traced, and the phases inside them, in order. Columns: launch, phase (NULL:
-- the whole kernel), us, launches; of the same kernel in the counters pass: ordinal, metrics [[name, value, reason]...], executed
-- instructions, and those of them that convert between FP16 and FP32. If a kernel has phases, only the first phase has metrics
-- and instructions.
SELECT launch, phase, us, launches, counted_ordinal,
  iif(is_first, (SELECT json_group_array(json_array(metric, value, reason)) FROM kernel_metrics WHERE kernel_id = counted), NULL),
  iif(is_first, (
    SELECT iif(count(opcode) > 0, total(counts ->> '$.smsp__sass_inst_executed'), NULL)
    FROM instructions WHERE kernel_id = counted), NULL),
  iif(is_first, ( -- HADD2.F32 that adds RZ converts from FP16
    SELECT iif(count(opcode) > 0, total(counts ->> '$.smsp__sass_inst_executed') FILTER (
      WHERE opcode GLOB 'F2F*' OR (opcode GLOB 'HADD2.F32*' AND sass GLOB '*RZ,*')), NULL)
    FROM instructions WHERE kernel_id = counted), NULL)
FROM (
  SELECT k.ordinal, coalesce(k.launch, k.name) AS launch, f.name AS phase, f.position,
    k.total_us * coalesce(f.share_ratio, 1) AS us, k.launches, c.ordinal AS counted_ordinal, c.id AS counted,
    f.position IS NULL OR f.position = (
      SELECT min(position) FROM phases WHERE kernel_id = k.id AND share_ratio IS NOT NULL) AS is_first
  FROM passes p JOIN kernels k ON k.pass_id = p.id
    LEFT JOIN phases f ON f.kernel_id = k.id AND f.share_ratio IS NOT NULL
    LEFT JOIN kernels c ON c.id = (
      SELECT min(other.id) FROM passes q JOIN kernels other ON other.pass_id = q.id
      WHERE q.run_id = p.run_id AND q.ordinal = 2 AND other.name = k.name AND other.launch IS k.launch)
  WHERE p.run_id = :run AND p.ordinal = 1 AND k.total_us > 0)
ORDER BY ordinal, position
