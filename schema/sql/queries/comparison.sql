-- :job, or :a :b. Compares the fp32 run of a job with each of its other runs, or run :a with run :b.
WITH requested AS (
  SELECT baseline_run, candidate_run FROM v_baselines WHERE job = :job
  UNION ALL SELECT :a, :b WHERE :a IS NOT NULL)
SELECT json_object(
  'workload', p.workload,
  'baseline', json_object(
    'run', p.baseline_run, 'job', p.baseline_job, 'device', p.baseline_device, 'variant', p.baseline_variant,
    'engine', p.baseline_engine, 'dataset', p.baseline_dataset,
    'epoch_ms_median', p.baseline_epoch_ms_median, 'epoch_ms_min', p.baseline_epoch_ms_min,
    'images_per_s', p.baseline_images_per_s, 'peak_memory_bytes', p.baseline_peak_memory_bytes,
    'test_accuracy_ratio', p.baseline_test_accuracy_ratio, 'launches_per_step', p.baseline_launches_per_step,
    'launch_gap_ratio', p.baseline_launch_gap_ratio,
    'partial', stored_json(CASE p.baseline_partial WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'null' END),
    'suspect', stored_json(iif(p.baseline_suspect, 'true', 'false')),
    'unavailable', stored_json(p.baseline_unavailable)),
  'candidate', json_object(
    'run', p.candidate_run, 'job', p.candidate_job, 'device', p.candidate_device, 'variant', p.candidate_variant,
    'engine', p.candidate_engine, 'dataset', p.candidate_dataset,
    'epoch_ms_median', p.candidate_epoch_ms_median, 'epoch_ms_min', p.candidate_epoch_ms_min,
    'images_per_s', p.candidate_images_per_s, 'peak_memory_bytes', p.candidate_peak_memory_bytes,
    'test_accuracy_ratio', p.candidate_test_accuracy_ratio, 'launches_per_step', p.candidate_launches_per_step,
    'launch_gap_ratio', p.candidate_launch_gap_ratio,
    'partial', stored_json(CASE p.candidate_partial WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'null' END),
    'suspect', stored_json(iif(p.candidate_suspect, 'true', 'false')),
    'unavailable', stored_json(p.candidate_unavailable)),
  'speedup_ratio', p.speedup_ratio, 'speedup_min_ratio', p.speedup_min_ratio, 'speedup_cold_ratio', p.speedup_cold_ratio,
  'speedup_warm_ratio', p.speedup_warm_ratio, 'peak_memory_ratio', p.peak_memory_ratio,
  'test_accuracy_difference_ratio', p.test_accuracy_difference_ratio, 'unavailable', stored_json(p.unavailable))
FROM requested CROSS JOIN v_pairs p ON p.baseline_run = requested.baseline_run AND p.candidate_run = requested.candidate_run
ORDER BY p.candidate_run
