-- Returns the values of an entry, and the text of its name.
SELECT entry.name, entry.stream, entry.graph_node, entry.grid_x, entry.grid_y, entry.grid_z, entry.block_x, entry.block_y,
  entry.block_z, entry.registers,
  entry.static_shared_bytes, entry.dynamic_shared_bytes, entry.bytes, entry.process, entry.thread, entry.context, entry.device,
    entry.source_memory,
  entry.destination_memory, entry.unknown_values, names.name
FROM activity_dictionary entry JOIN names ON names.pass_id = entry.pass_id AND names.ordinal = entry.name
  WHERE entry.pass_id = :pass AND entry.entry = :entry
