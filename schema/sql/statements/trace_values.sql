-- The values of an entry, and the text of its name.
SELECT d.name, d.stream, d.graph_node, d.grid_x, d.grid_y, d.grid_z, d.block_x, d.block_y, d.block_z, d.registers,
  d.static_shared_bytes, d.dynamic_shared_bytes, d.bytes, d.process, d.thread, d.context, d.device, d.source_memory,
  d.destination_memory, n.name
FROM activity_dictionary d JOIN names n ON n.pass_id = d.pass_id AND n.ordinal = d.name WHERE d.pass_id = :pass AND d.entry = :entry
