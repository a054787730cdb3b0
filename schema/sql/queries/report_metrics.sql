-- :run :kernel. Columns: the name of a metric as JSON, the name as text. Lists all metrics that the counters pass collected or
-- gives a reason for, of one kernel or of all.
SELECT DISTINCT json_quote(m.metric), m.metric
FROM passes p JOIN kernels k ON k.pass_id = p.id JOIN kernel_metrics m ON m.kernel_id = k.id
WHERE p.run_id = :run AND p.name = 'counters' AND (:kernel IS NULL OR k.ordinal = :kernel)
ORDER BY m.metric
