-- The rows of a pass by start; of those that start together, the longest first.
SELECT g.kind, a.start_ns, a.duration_ns, a.correlation, a.step, a.entry
FROM activity_groups g CROSS JOIN activity a ON a.pass_id = g.pass_id AND a.activity_group = g.activity_group
WHERE g.pass_id = :pass ORDER BY a.start_ns, a.duration_ns DESC, a.ordinal
