-- :run. The operations, API calls, NVTX ranges and overheads in the trace of a run, if its rows are kept, in no particular order.
-- Columns: '', start, duration, kind, correlation, entry (timeline_values.sql). Does not join the entries, because looking them
-- up would take longer than the rest of the query.
SELECT '', a.start_ns, a.duration_ns, g.kind, a.correlation, a.entry
FROM passes p CROSS JOIN activity_groups g ON g.pass_id = p.id
  CROSS JOIN activity a ON a.pass_id = g.pass_id AND a.activity_group = g.activity_group
WHERE p.run_id = :run AND p.ordinal = 1 AND p.activity_kept = 1
  AND g.kind IN (SELECT kind FROM activity_kinds
                 WHERE name IN ('kernel', 'memcpy', 'memset', 'runtime', 'driver', 'range', 'overhead', 'span'))
