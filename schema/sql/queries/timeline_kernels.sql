-- Returns the kernels of the trace of run :run, in the order of their first start. Columns: launch ('': unknown), name, number of
-- executions, their total time in us, number of blocks, number of threads of a block, theoretical occupancy.
SELECT coalesce(kernel.launch, ''), kernel.name, kernel.launches, kernel.total_us, kernel.grid_x * kernel.grid_y * kernel.grid_z,
  kernel.block_x * kernel.block_y * kernel.block_z, kernel.theoretical_occupancy_ratio
FROM passes pass CROSS JOIN kernels kernel ON kernel.pass_id = pass.id
WHERE pass.run_id = :run AND pass.ordinal = 1 ORDER BY kernel.ordinal
