-- :run. The phases to which the operations of a name in the trace of a run belong. Columns: phase or '', index of the name, weight of
-- the phase among those of the name.
SELECT coalesce(phase, ''), name, sum(weight) FROM (
  SELECT k.phase, n.ordinal AS name, k.total_us AS weight, k.ordinal, 0 AS position
  FROM passes p CROSS JOIN kernels k ON k.pass_id = p.id CROSS JOIN names n ON n.pass_id = p.id AND n.name = k.name
  WHERE p.run_id = :run AND p.ordinal = 1 AND k.phase IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM phases f WHERE f.kernel_id = k.id)
  UNION ALL
  SELECT f.phase, n.ordinal, k.total_us * f.share_ratio, k.ordinal, f.position
  FROM passes p CROSS JOIN kernels k ON k.pass_id = p.id CROSS JOIN phases f ON f.kernel_id = k.id
    CROSS JOIN names n ON n.pass_id = p.id AND n.name = k.name
  WHERE p.run_id = :run AND p.ordinal = 1)
WHERE weight > 0 GROUP BY name, phase ORDER BY name, min(ordinal), min(position)
