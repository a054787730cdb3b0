-- :job
SELECT json_object(
  'job', c.job, 'workload', c.workload, 'device', c.device,
  'baseline', json_object(
    'run', b.run, 'variant', b.variant, 'engine', b.engine, 'dataset', b.dataset, 'epoch_ms_median', b.epoch_ms_median, 'epoch_ms_min', b.epoch_ms_min,
    'images_per_s', b.images_per_s, 'peak_memory_bytes', b.peak_memory_bytes, 'test_accuracy_ratio', b.test_accuracy_ratio,
    'launches_per_step', b.launches_per_step, 'launch_gap_ratio', b.launch_gap_ratio,
    'partial', json(CASE b."partial" WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'null' END), 'suspect', json(iif(b.suspect, 'true', 'false')),
    'unavailable', json(b.unavailable)),
  'candidate', json_object(
    'run', o.run, 'variant', o.variant, 'engine', o.engine, 'dataset', o.dataset, 'epoch_ms_median', o.epoch_ms_median, 'epoch_ms_min', o.epoch_ms_min,
    'images_per_s', o.images_per_s, 'peak_memory_bytes', o.peak_memory_bytes, 'test_accuracy_ratio', o.test_accuracy_ratio,
    'launches_per_step', o.launches_per_step, 'launch_gap_ratio', o.launch_gap_ratio,
    'partial', json(CASE o."partial" WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'null' END), 'suspect', json(iif(o.suspect, 'true', 'false')),
    'unavailable', json(o.unavailable)),
  'speedup_ratio', c.speedup_ratio, 'speedup_min_ratio', c.speedup_min_ratio, 'peak_memory_ratio', c.peak_memory_ratio,
  'test_accuracy_difference_ratio', c.test_accuracy_difference_ratio, 'unavailable', json(c.unavailable))
FROM v_comparisons c JOIN v_runs b ON b.run = c.baseline_run JOIN v_runs o ON o.run = c.candidate_run
WHERE c.job = :job
ORDER BY c.candidate_run
