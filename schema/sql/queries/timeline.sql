-- :job :run :from :to :limit
SELECT json_object(
  'run', p.run_id, 'kind', k.name, 'name', n.name, 'start_ns', a.start_ns, 'end_ns', a.end_ns,
  'stream', nullif(a.stream, 0), 'correlation', nullif(a.correlation, 0), 'graph_node', nullif(a.graph_node, 0),
  'step', nullif(a.step, 0) - 1,
  'grid', json(iif(a.grid_x = 0, 'null', json_array(a.grid_x, a.grid_y, a.grid_z))),
  'block', json(iif(a.block_x = 0, 'null', json_array(a.block_x, a.block_y, a.block_z))),
  'registers', iif(a.grid_x = 0, NULL, a.registers), 'static_shared_bytes', iif(a.grid_x = 0, NULL, a.static_shared_bytes),
  'dynamic_shared_bytes', iif(a.grid_x = 0, NULL, a.dynamic_shared_bytes), 'bytes', iif(k.name IN ('memcpy', 'memset', 'memory'), a.bytes, NULL))
FROM passes p
  CROSS JOIN activity_spans s ON s.pass_id = p.id
  CROSS JOIN activity a ON a.pass_id = s.pass_id AND a.kind = s.kind
    AND a.start_ns >= coalesce(:from, 0) - s.longest_ns AND a.start_ns < coalesce(:to, 9223372036854775807)
    AND (a.end_ns > coalesce(:from, 0) OR a.start_ns >= coalesce(:from, 0))
  JOIN activity_kinds k ON k.kind = a.kind
  JOIN names n ON n.pass_id = a.pass_id AND n.ordinal = a.name
WHERE p.job_id = :job AND (:run IS NULL OR p.run_id = :run)
ORDER BY p.run_id, a.start_ns, a.end_ns DESC, a.ordinal LIMIT coalesce(:limit, 1000)
