-- Compares the fp32 run of job :job with each of its other runs, or, if :a and :b are given, run :a with run :b.
WITH requested AS (
  SELECT baseline_run, candidate_run FROM v_baselines WHERE job = :job
  UNION ALL SELECT :a, :b WHERE :a IS NOT NULL)
SELECT json_object(
  'workload', pair.workload,
  'baseline', json_object(
    'run', pair.baseline_run, 'job', pair.baseline_job, 'device', pair.baseline_device, 'variant', pair.baseline_variant,
    'engine', pair.baseline_engine, 'dataset', pair.baseline_dataset,
    'epoch_ms_median', pair.baseline_epoch_ms_median, 'epoch_ms_min', pair.baseline_epoch_ms_min,
    'images_per_s', pair.baseline_images_per_s, 'peak_memory_bytes', pair.baseline_peak_memory_bytes,
    'test_accuracy_ratio', pair.baseline_test_accuracy_ratio, 'launches_per_step', pair.baseline_launches_per_step,
    'launch_gap_ratio', pair.baseline_launch_gap_ratio,
    'partial', stored_json(CASE pair.baseline_partial WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'null' END),
    'suspect', stored_json(iif(pair.baseline_suspect, 'true', 'false')),
    'suspect_reason', pair.baseline_suspect_reason, 'suspect_cause', pair.baseline_suspect_cause,
    'unavailable', stored_json(pair.baseline_unavailable)),
  'candidate', json_object(
    'run', pair.candidate_run, 'job', pair.candidate_job, 'device', pair.candidate_device, 'variant', pair.candidate_variant,
    'engine', pair.candidate_engine, 'dataset', pair.candidate_dataset,
    'epoch_ms_median', pair.candidate_epoch_ms_median, 'epoch_ms_min', pair.candidate_epoch_ms_min,
    'images_per_s', pair.candidate_images_per_s, 'peak_memory_bytes', pair.candidate_peak_memory_bytes,
    'test_accuracy_ratio', pair.candidate_test_accuracy_ratio, 'launches_per_step', pair.candidate_launches_per_step,
    'launch_gap_ratio', pair.candidate_launch_gap_ratio,
    'partial', stored_json(CASE pair.candidate_partial WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'null' END),
    'suspect', stored_json(iif(pair.candidate_suspect, 'true', 'false')),
    'suspect_reason', pair.candidate_suspect_reason, 'suspect_cause', pair.candidate_suspect_cause,
    'unavailable', stored_json(pair.candidate_unavailable)),
  'speedup_ratio', pair.speedup_ratio, 'speedup_min_ratio', pair.speedup_min_ratio, 'speedup_cold_ratio', pair.speedup_cold_ratio,
  'speedup_warm_ratio', pair.speedup_warm_ratio, 'peak_memory_ratio', pair.peak_memory_ratio,
  'test_accuracy_difference_ratio', pair.test_accuracy_difference_ratio, 'unavailable', stored_json(pair.unavailable))
FROM requested CROSS JOIN v_pairs pair ON pair.baseline_run = requested.baseline_run
  AND pair.candidate_run = requested.candidate_run
ORDER BY pair.candidate_run
