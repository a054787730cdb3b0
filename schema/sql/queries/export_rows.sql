-- :run. The rows in the trace of a run, if they are kept, by start; of those that start together, the longest first. Columns: name,
-- kind, start, duration, correlation, step, ordinal of the name, stream, graph node, grid (3), block (3), registers, static and
-- dynamic shared memory, bytes, process, thread, context, device, source and destination memory.
SELECT n.name, t.kind, t.start_ns, t.duration_ns, t.correlation, t.step, d.name, d.stream, d.graph_node, d.grid_x, d.grid_y,
  d.grid_z, d.block_x, d.block_y, d.block_z, d.registers, d.static_shared_bytes, d.dynamic_shared_bytes, d.bytes, d.process,
  d.thread, d.context, d.device, d.source_memory, d.destination_memory
FROM ( -- LIMIT: only these columns are sorted
  SELECT p.id AS pass_id, g.kind, a.start_ns, a.duration_ns, a.correlation, a.step, a.entry
  FROM passes p CROSS JOIN activity_groups g ON g.pass_id = p.id
    CROSS JOIN activity a ON a.pass_id = g.pass_id AND a.activity_group = g.activity_group
  WHERE p.run_id = :run AND p.ordinal = 1 AND p.activity_kept = 1
  ORDER BY a.start_ns, a.duration_ns DESC, a.ordinal LIMIT -1) t
  CROSS JOIN activity_dictionary d ON d.pass_id = t.pass_id AND d.entry = t.entry
  CROSS JOIN names n ON n.pass_id = d.pass_id AND n.ordinal = d.name
