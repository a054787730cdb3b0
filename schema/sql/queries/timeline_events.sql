-- :run. The operations, API calls, NVTX ranges and overheads in the trace of a run, if its rows are kept, in no particular order.
-- Columns: '', start, duration, kind, ordinal of the name, correlation, graph node, stream, thread.
SELECT '', a.start_ns, a.duration_ns, g.kind, d.name, a.correlation, d.graph_node, d.stream, d.thread
FROM passes p CROSS JOIN activity_groups g ON g.pass_id = p.id
  CROSS JOIN activity a ON a.pass_id = g.pass_id AND a.activity_group = g.activity_group
  CROSS JOIN activity_dictionary d ON d.pass_id = a.pass_id AND d.entry = a.entry
WHERE p.run_id = :run AND p.ordinal = 1 AND p.activity_kept = 1
  AND g.kind IN (SELECT kind FROM activity_kinds WHERE name IN ('kernel', 'memcpy', 'memset', 'runtime', 'driver', 'range', 'overhead', 'span'))
