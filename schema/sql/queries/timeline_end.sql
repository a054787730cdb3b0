-- :run. Columns: '', when the last row of a run's trace ends. The last rows by start of each group have the latest end.
SELECT '', coalesce(max((
  SELECT max(a.start_ns + a.duration_ns) FROM activity a
  WHERE a.pass_id = g.pass_id AND a.activity_group = g.activity_group AND a.start_ns >= (
    SELECT max(b.start_ns) FROM activity b WHERE b.pass_id = g.pass_id AND b.activity_group = g.activity_group) - g.longest_ns)), 0)
FROM passes p JOIN activity_groups g ON g.pass_id = p.id
WHERE p.run_id = :run AND p.ordinal = 1 AND p.activity_kept = 1
