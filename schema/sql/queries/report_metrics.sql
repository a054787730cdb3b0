-- Returns the names of all metrics for which the counters pass of run :run has a value or a reason, in one kernel (:kernel, an
-- ordinal) or in any kernel (:kernel NULL). Columns: the name as JSON, the name as text.
SELECT DISTINCT json_quote(metric_row.metric), metric_row.metric
FROM passes pass JOIN kernels kernel ON kernel.pass_id = pass.id JOIN kernel_metrics metric_row
  ON metric_row.kernel_id = kernel.id
WHERE pass.run_id = :run AND pass.name = 'counters' AND (:kernel IS NULL OR kernel.ordinal = :kernel)
ORDER BY metric_row.metric
