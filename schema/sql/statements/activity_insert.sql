INSERT INTO activity (pass_id, kind, start_ns, ordinal, end_ns, name, stream, correlation, graph_node, step, grid_x, grid_y, grid_z, block_x, block_y,
  block_z, registers, static_shared_bytes, dynamic_shared_bytes, bytes)
VALUES (:pass, :kind, :start_ns, :ordinal, :end_ns, :name, :stream, :correlation, :graph_node, :step, :grid_x, :grid_y, :grid_z, :block_x, :block_y,
  :block_z, :registers, :static_shared_bytes, :dynamic_shared_bytes, :bytes)
