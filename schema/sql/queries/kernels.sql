-- Returns at most :limit kernels of job :job with ids above :after. :pass and :run select a pass and a run (NULL: any). 'metrics'
-- is null for kernels with more than :most_metrics metrics. Columns: the kernel; its id, which the request for the next page
-- passes as :after.
SELECT json_object(
  'id', kernel.id, 'run', pass.run_id, 'variant', run.variant, 'pass', pass.name, 'ordinal', kernel.ordinal,
    'launch', kernel.launch,
  'phase', kernel.phase, 'name', kernel.name, 'launches', kernel.launches, 'total_us', kernel.total_us, 'min_us', kernel.min_us,
    'median_us', kernel.median_us,
  'max_us', kernel.max_us, 'share_ratio', kernel.share_ratio, 'registers_per_thread', kernel.registers_per_thread,
  'static_shared_bytes', kernel.static_shared_bytes, 'dynamic_shared_bytes', kernel.dynamic_shared_bytes,
  'grid', stored_json(iif(kernel.grid_x IS NULL, 'null', json_array(kernel.grid_x, kernel.grid_y, kernel.grid_z))),
  'block', stored_json(iif(kernel.block_x IS NULL, 'null', json_array(kernel.block_x, kernel.block_y, kernel.block_z))),
  'counted_duration_us', (SELECT value / 1000 FROM kernel_metrics WHERE kernel_id = kernel.id
    AND metric = 'gpu__time_duration.sum'),
  'theoretical_occupancy_ratio', kernel.theoretical_occupancy_ratio, 'code_sha256', kernel.code_sha256, 'reason', kernel.reason,
  'metrics', stored_json(iif((SELECT count(*) FROM kernel_metrics WHERE kernel_id = kernel.id) > :most_metrics, 'null', (
    SELECT json_group_array(json_object('metric', metric_row.metric, 'value', metric_row.value, 'reason', metric_row.reason))
    FROM kernel_metrics metric_row WHERE metric_row.kernel_id = kernel.id))),
  'phases', stored_json((
    SELECT json_group_array(stored_json(phase)) FROM (
      SELECT json_object('name', kernel_phase.name, 'phase', kernel_phase.phase, 'steps', kernel_phase.steps,
        'blocks', kernel_phase.blocks, 'mean_us', kernel_phase.mean_us,
                         'min_us', kernel_phase.min_us, 'max_us', kernel_phase.max_us, 'share_ratio', kernel_phase.share_ratio)
                           AS phase
      FROM phases kernel_phase WHERE kernel_phase.kernel_id = kernel.id ORDER BY kernel_phase.position)))),
  kernel.id
FROM passes pass JOIN runs run ON run.id = pass.run_id JOIN kernels kernel ON kernel.pass_id = pass.id
WHERE pass.job_id = :job AND (:pass IS NULL OR pass.name = :pass) AND (:run IS NULL OR pass.run_id = :run)
  AND kernel.id > coalesce(:after, 0)
ORDER BY kernel.id LIMIT coalesce(:limit, 1000)
