-- Returns the kernels that the activity pass of run :run traced, and the phases inside them, in the order of execution. A kernel
-- with phases is listed by its phases, whose shares add up to the kernel's time. Columns: name, launch, phase, number of
-- launches, time in us, SHA-256 of the machine code, registers, static and dynamic shared memory, occupancy, grid x y z, block x
-- y z, metrics of the counters pass.
SELECT kernel.name, kernel.launch, coalesce(kernel_phase.name, kernel.phase), kernel.launches,
  kernel.total_us * coalesce(kernel_phase.share_ratio, 1),
  coalesce(nullif(kernel.code_sha256, ''), counted_kernel.code_sha256), kernel.registers_per_thread, kernel.static_shared_bytes,
    kernel.dynamic_shared_bytes,
  coalesce(kernel.theoretical_occupancy_ratio, counted_kernel.theoretical_occupancy_ratio), kernel.grid_x, kernel.grid_y,
    kernel.grid_z, kernel.block_x, kernel.block_y,
  kernel.block_z, iif(kernel_phase.name IS NULL, (
    SELECT json_group_array(json_array(metric, value)) FROM (
      SELECT metric, value FROM kernel_metrics WHERE kernel_id = counted_kernel.id AND value IS NOT NULL ORDER BY metric)), '[]')
FROM passes activity_pass JOIN kernels kernel ON kernel.pass_id = activity_pass.id
  LEFT JOIN phases kernel_phase ON kernel_phase.kernel_id = kernel.id AND kernel_phase.share_ratio IS NOT NULL
  LEFT JOIN kernels counted_kernel ON counted_kernel.id = (
    SELECT min(other.id) FROM passes counters_pass JOIN kernels other ON other.pass_id = counters_pass.id
    WHERE counters_pass.run_id = activity_pass.run_id AND counters_pass.ordinal = 2 AND other.name = kernel.name
      AND other.launch IS kernel.launch)
WHERE activity_pass.run_id = :run AND activity_pass.ordinal = 1
ORDER BY kernel.ordinal, kernel_phase.position
