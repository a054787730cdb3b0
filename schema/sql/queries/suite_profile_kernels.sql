-- Returns the kernels that the activity pass of run :run has traced, in the order of execution. A kernel with phases has one row
-- for each phase, and the shares of the phases add up to the kernel's time. Kernels of one name have one machine code, also those
-- whose counters were not collected. Columns: name, launch, phase, number of launches, time in us, SHA-256 of the machine code,
-- registers, static and dynamic shared memory, occupancy, grid x y z, block x y z, metrics of the counters pass.
SELECT kernel.name, kernel.launch, coalesce(traced.phase, kernel.phase), kernel.launches, traced.us,
  coalesce(nullif(kernel.code_sha256, ''), (
    SELECT other.code_sha256 FROM v_counted_kernels pair JOIN kernels other ON other.id = pair.counted
    WHERE pair.kernel = kernel.id LIMIT 1)), kernel.registers_per_thread, kernel.static_shared_bytes,
  kernel.dynamic_shared_bytes,
  coalesce(kernel.theoretical_occupancy_ratio, counted_kernel.theoretical_occupancy_ratio), kernel.grid_x, kernel.grid_y,
  kernel.grid_z, kernel.block_x, kernel.block_y, kernel.block_z, iif(traced.phase IS NULL, (
    SELECT json_group_array(json_array(metric, value)) FROM (
      SELECT metric, value FROM kernel_metrics WHERE kernel_id = counted_kernel.id AND value IS NOT NULL ORDER BY metric)), '[]')
FROM v_traced_kernels traced JOIN kernels kernel ON kernel.id = traced.kernel
  LEFT JOIN kernels counted_kernel ON counted_kernel.id = traced.counted
WHERE traced.run = :run
ORDER BY traced.ordinal, traced.position
