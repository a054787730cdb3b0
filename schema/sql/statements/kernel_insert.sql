INSERT INTO kernels (pass_id, ordinal, launch, phase, name, launches, total_us, min_us, median_us, max_us, share_ratio, registers_per_thread,
  static_shared_bytes, dynamic_shared_bytes, grid_x, grid_y, grid_z, block_x, block_y, block_z, theoretical_occupancy_ratio,
  code_sha256, reason)
VALUES (:pass, :ordinal, :launch, :phase, :name, :launches, :total_us, :min_us, :median_us, :max_us, :share_ratio, :registers_per_thread,
  :static_shared_bytes, :dynamic_shared_bytes, nullif(:grid_x, 0), nullif(:grid_y, 0), nullif(:grid_z, 0), nullif(:block_x, 0),
  nullif(:block_y, 0), nullif(:block_z, 0), :theoretical_occupancy_ratio, :code_sha256, :reason)
