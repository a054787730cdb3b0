-- The parameters are bound by position.
INSERT INTO activity_dictionary (pass_id, entry, bytes, name, stream, graph_node, grid_x, grid_y, grid_z, block_x, block_y, block_z,
  registers, static_shared_bytes, dynamic_shared_bytes, process, thread, device, context, source_memory, destination_memory,
  call_stream, event, unknown_values)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
