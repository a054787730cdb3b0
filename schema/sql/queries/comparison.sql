-- :job, or :a :b. Compares the fp32 run of a job with each of its other runs, or run :a with run :b.
WITH requested AS (
  SELECT baseline_run, candidate_run FROM v_comparisons WHERE job = :job
  UNION ALL SELECT :a, :b WHERE :a IS NOT NULL)
SELECT json_object(
  'workload', p.workload,
  'baseline', json_object(
    'run', b.run, 'job', b.job, 'device', b.device, 'variant', b.variant, 'engine', b.engine, 'dataset', b.dataset,
    'epoch_ms_median', b.epoch_ms_median, 'epoch_ms_min', b.epoch_ms_min, 'images_per_s', b.images_per_s,
    'peak_memory_bytes', b.peak_memory_bytes, 'test_accuracy_ratio', b.test_accuracy_ratio,
    'launches_per_step', b.launches_per_step, 'launch_gap_ratio', b.launch_gap_ratio,
    'partial', json(CASE b."partial" WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'null' END),
    'suspect', json(iif(b.suspect, 'true', 'false')),
    'unavailable', json(b.unavailable)),
  'candidate', json_object(
    'run', c.run, 'job', c.job, 'device', c.device, 'variant', c.variant, 'engine', c.engine, 'dataset', c.dataset,
    'epoch_ms_median', c.epoch_ms_median, 'epoch_ms_min', c.epoch_ms_min, 'images_per_s', c.images_per_s,
    'peak_memory_bytes', c.peak_memory_bytes, 'test_accuracy_ratio', c.test_accuracy_ratio,
    'launches_per_step', c.launches_per_step, 'launch_gap_ratio', c.launch_gap_ratio,
    'partial', json(CASE c."partial" WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'null' END),
    'suspect', json(iif(c.suspect, 'true', 'false')),
    'unavailable', json(c.unavailable)),
  'speedup_ratio', p.speedup_ratio, 'speedup_min_ratio', p.speedup_min_ratio, 'speedup_cold_ratio', p.speedup_cold_ratio,
  'speedup_warm_ratio', p.speedup_warm_ratio, 'peak_memory_ratio', p.peak_memory_ratio,
  'test_accuracy_difference_ratio', p.test_accuracy_difference_ratio, 'unavailable', json(p.unavailable))
FROM requested JOIN v_pairs p ON p.baseline_run = requested.baseline_run AND p.candidate_run = requested.candidate_run
  JOIN v_runs b ON b.run = p.baseline_run JOIN v_runs c ON c.run = p.candidate_run
ORDER BY p.candidate_run
