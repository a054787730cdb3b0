-- :run. The kernels that the activity pass of a run traced, and the phases inside them, in order. Columns: name, launch, phase,
-- launches, us, machine code, registers, static and dynamic shared memory, occupancy, grid x y z, block x y z, metrics of the
-- counters pass. A kernel with phases is listed by its phases, whose shares add up to its time.
SELECT k.name, k.launch, coalesce(f.name, k.phase), k.launches, k.total_us * coalesce(f.share_ratio, 1),
  coalesce(nullif(k.code_sha256, ''), c.code_sha256), k.registers_per_thread, k.static_shared_bytes, k.dynamic_shared_bytes,
  coalesce(k.theoretical_occupancy_ratio, c.theoretical_occupancy_ratio), k.grid_x, k.grid_y, k.grid_z, k.block_x, k.block_y,
  k.block_z, iif(f.name IS NULL, (
    SELECT json_group_array(json_array(metric, value)) FROM (
      SELECT metric, value FROM kernel_metrics WHERE kernel_id = c.id AND value IS NOT NULL ORDER BY metric)), '[]')
FROM passes p JOIN kernels k ON k.pass_id = p.id
  LEFT JOIN phases f ON f.kernel_id = k.id AND f.share_ratio IS NOT NULL
  LEFT JOIN kernels c ON c.id = (
    SELECT min(other.id) FROM passes q JOIN kernels other ON other.pass_id = q.id
    WHERE q.run_id = p.run_id AND q.ordinal = 2 AND other.name = k.name AND other.launch IS k.launch)
WHERE p.run_id = :run AND p.ordinal = 1
ORDER BY k.ordinal, f.position
