-- :job :pass :run :most_metrics :after :limit. Columns: kernel, its id (:after of the next page). 'metrics' is null if the kernel
-- has more than :most_metrics.
SELECT json_object(
  'id', k.id, 'run', p.run_id, 'variant', r.variant, 'pass', p.name, 'ordinal', k.ordinal, 'launch', k.launch,
  'phase', k.phase, 'name', k.name, 'launches', k.launches, 'total_us', k.total_us, 'min_us', k.min_us, 'median_us', k.median_us,
  'max_us', k.max_us, 'share_ratio', k.share_ratio, 'registers_per_thread', k.registers_per_thread,
  'static_shared_bytes', k.static_shared_bytes, 'dynamic_shared_bytes', k.dynamic_shared_bytes,
  'grid', stored_json(iif(k.grid_x IS NULL, 'null', json_array(k.grid_x, k.grid_y, k.grid_z))),
  'block', stored_json(iif(k.block_x IS NULL, 'null', json_array(k.block_x, k.block_y, k.block_z))),
  'counted_duration_us', (SELECT value / 1000 FROM kernel_metrics WHERE kernel_id = k.id AND metric = 'gpu__time_duration.sum'),
  'theoretical_occupancy_ratio', k.theoretical_occupancy_ratio, 'code_sha256', k.code_sha256, 'reason', k.reason,
  'metrics', stored_json(iif((SELECT count(*) FROM kernel_metrics WHERE kernel_id = k.id) > :most_metrics, 'null', (
    SELECT json_group_array(json_object('metric', m.metric, 'value', m.value, 'reason', m.reason))
    FROM kernel_metrics m WHERE m.kernel_id = k.id))),
  'phases', stored_json((
    SELECT json_group_array(stored_json(phase)) FROM (
      SELECT json_object('name', f.name, 'phase', f.phase, 'steps', f.steps, 'blocks', f.blocks, 'mean_us', f.mean_us,
                         'min_us', f.min_us, 'max_us', f.max_us, 'share_ratio', f.share_ratio) AS phase
      FROM phases f WHERE f.kernel_id = k.id ORDER BY f.position)))),
  k.id
FROM passes p JOIN runs r ON r.id = p.run_id JOIN kernels k ON k.pass_id = p.id
WHERE p.job_id = :job AND (:pass IS NULL OR p.name = :pass) AND (:run IS NULL OR p.run_id = :run) AND k.id > coalesce(:after, 0)
ORDER BY k.id LIMIT coalesce(:limit, 1000)
