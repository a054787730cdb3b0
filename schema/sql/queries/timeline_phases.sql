-- Returns, for each name of operations in the trace of run :run, the phases to which these operations belong. Columns: phase ('':
-- none), ordinal of the name, time in us that operations of this name take in this phase.
SELECT coalesce(phase, ''), name, sum(weight) FROM (
  SELECT kernel.phase, names.ordinal AS name, kernel.total_us AS weight, kernel.ordinal, 0 AS position
  FROM passes pass CROSS JOIN kernels kernel ON kernel.pass_id = pass.id CROSS JOIN names ON names.pass_id = pass.id
    AND names.name = kernel.name
  WHERE pass.run_id = :run AND pass.ordinal = 1 AND kernel.phase IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM phases kernel_phase WHERE kernel_phase.kernel_id = kernel.id)
  UNION ALL
  SELECT kernel_phase.phase, names.ordinal, kernel.total_us * kernel_phase.share_ratio, kernel.ordinal, kernel_phase.position
  FROM passes pass CROSS JOIN kernels kernel ON kernel.pass_id = pass.id CROSS JOIN phases kernel_phase
    ON kernel_phase.kernel_id = kernel.id
    CROSS JOIN names ON names.pass_id = pass.id AND names.name = kernel.name
  WHERE pass.run_id = :run AND pass.ordinal = 1)
WHERE weight > 0 GROUP BY name, phase ORDER BY name, min(ordinal), min(position)
