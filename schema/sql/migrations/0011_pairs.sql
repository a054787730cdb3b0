-- One row a run: the medians of its samples with a cold cache and with a warm one.
CREATE VIEW v_launch_times AS
SELECT run, cold_us, warm_us, iif(cold_us IS NULL, coalesce(cold_reason, reason), NULL) AS cold_reason,
  iif(warm_us IS NULL, coalesce(warm_reason, reason), NULL) AS warm_reason,
  (SELECT min(suspect_reason) FROM samples WHERE samples.pass_id = medians.pass_id AND mode = 'cold' AND suspect) AS cold_suspect,
  (SELECT min(suspect_reason) FROM samples WHERE samples.pass_id = medians.pass_id AND mode = 'warm' AND suspect) AS warm_suspect
FROM (
  SELECT r.id AS run, t.id AS pass_id, cold.value AS cold_us, cold.reason AS cold_reason, warm.value AS warm_us, warm.reason AS warm_reason,
    CASE WHEN t.id IS NULL THEN 'the job did not ask for the timing pass'
         WHEN t.state = 'unavailable' THEN t.reason
         WHEN t.state <> 'completed' THEN 'the timing pass is ' || t.state
         ELSE 'the timing pass did not measure it' END AS reason
  FROM runs r LEFT JOIN passes t ON t.run_id = r.id AND t.ordinal = 0
    LEFT JOIN measurements cold ON cold.pass_id = t.id AND cold.name = 'time_cold_us_median'
    LEFT JOIN measurements warm ON warm.pass_id = t.id AND warm.name = 'time_warm_us_median') medians;

-- Any two runs of one workload, of whichever jobs: ask for both, or for the runs of a job. Ratios of a suspect time are NULL: a result
-- faster than its floor is no baseline and no success. What is NULL has its reason in unavailable, a JSON object {column: reason}.
CREATE VIEW v_pairs AS
SELECT workload, baseline_job, baseline_run, baseline_device, baseline_variant, candidate_job, candidate_run, candidate_device, candidate_variant,
  baseline_epoch_ms_median, candidate_epoch_ms_median, baseline_epoch_ms_min, candidate_epoch_ms_min,
  baseline_images_per_s, candidate_images_per_s,
  iif(epoch_suspect IS NULL, baseline_epoch_ms_median / candidate_epoch_ms_median, NULL) AS speedup_ratio,
  iif(epoch_suspect IS NULL, baseline_epoch_ms_min / candidate_epoch_ms_min, NULL) AS speedup_min_ratio,
  baseline_time_cold_us_median, candidate_time_cold_us_median, baseline_time_warm_us_median, candidate_time_warm_us_median,
  iif(cold_suspect IS NULL, baseline_time_cold_us_median / candidate_time_cold_us_median, NULL) AS speedup_cold_ratio,
  iif(warm_suspect IS NULL, baseline_time_warm_us_median / candidate_time_warm_us_median, NULL) AS speedup_warm_ratio,
  baseline_peak_memory_bytes, candidate_peak_memory_bytes,
  candidate_peak_memory_bytes / baseline_peak_memory_bytes AS peak_memory_ratio,
  baseline_test_accuracy_ratio, candidate_test_accuracy_ratio,
  candidate_test_accuracy_ratio - baseline_test_accuracy_ratio AS test_accuracy_difference_ratio,
  baseline_launches_per_step, candidate_launches_per_step, baseline_launch_gap_ratio, candidate_launch_gap_ratio,
  baseline_unavailable, candidate_unavailable,
  json_patch('{}', json_object( -- a merge patch drops what is null
    'speedup_ratio', coalesce(epoch_suspect, baseline_name || (baseline_unavailable ->> '$.epoch_ms_median'),
                              candidate_name || (candidate_unavailable ->> '$.epoch_ms_median')),
    'speedup_min_ratio', coalesce(epoch_suspect, baseline_name || (baseline_unavailable ->> '$.epoch_ms_min'),
                                  candidate_name || (candidate_unavailable ->> '$.epoch_ms_min')),
    'speedup_cold_ratio', coalesce(cold_suspect, baseline_name || baseline_cold_reason, candidate_name || candidate_cold_reason),
    'speedup_warm_ratio', coalesce(warm_suspect, baseline_name || baseline_warm_reason, candidate_name || candidate_warm_reason),
    'peak_memory_ratio', coalesce(baseline_name || (baseline_unavailable ->> '$.peak_memory_bytes'),
                                  candidate_name || (candidate_unavailable ->> '$.peak_memory_bytes')),
    'test_accuracy_difference_ratio', coalesce(baseline_name || (baseline_unavailable ->> '$.test_accuracy_ratio'),
                                               candidate_name || (candidate_unavailable ->> '$.test_accuracy_ratio')))) AS unavailable
FROM (
  SELECT b.workload, b.job AS baseline_job, c.job AS candidate_job, b.run AS baseline_run, c.run AS candidate_run,
    b.device AS baseline_device, c.device AS candidate_device, b.variant AS baseline_variant, c.variant AS candidate_variant,
    b.variant || iif(b.variant = c.variant, ' of run ' || b.run, '') || ': ' AS baseline_name,
    c.variant || iif(b.variant = c.variant, ' of run ' || c.run, '') || ': ' AS candidate_name,
    b.epoch_ms_median AS baseline_epoch_ms_median, c.epoch_ms_median AS candidate_epoch_ms_median,
    b.epoch_ms_min AS baseline_epoch_ms_min, c.epoch_ms_min AS candidate_epoch_ms_min,
    b.images_per_s AS baseline_images_per_s, c.images_per_s AS candidate_images_per_s,
    bt.cold_us AS baseline_time_cold_us_median, ct.cold_us AS candidate_time_cold_us_median,
    bt.warm_us AS baseline_time_warm_us_median, ct.warm_us AS candidate_time_warm_us_median,
    b.peak_memory_bytes AS baseline_peak_memory_bytes, c.peak_memory_bytes AS candidate_peak_memory_bytes,
    b.test_accuracy_ratio AS baseline_test_accuracy_ratio, c.test_accuracy_ratio AS candidate_test_accuracy_ratio,
    b.launches_per_step AS baseline_launches_per_step, c.launches_per_step AS candidate_launches_per_step,
    b.launch_gap_ratio AS baseline_launch_gap_ratio, c.launch_gap_ratio AS candidate_launch_gap_ratio,
    b.unavailable AS baseline_unavailable, c.unavailable AS candidate_unavailable,
    bt.cold_reason AS baseline_cold_reason, ct.cold_reason AS candidate_cold_reason,
    bt.warm_reason AS baseline_warm_reason, ct.warm_reason AS candidate_warm_reason,
    coalesce(b.variant || ' is suspect: ' || b.suspect_reason, c.variant || ' is suspect: ' || c.suspect_reason) AS epoch_suspect,
    coalesce(b.variant || ' is suspect: ' || bt.cold_suspect, c.variant || ' is suspect: ' || ct.cold_suspect) AS cold_suspect,
    coalesce(b.variant || ' is suspect: ' || bt.warm_suspect, c.variant || ' is suspect: ' || ct.warm_suspect) AS warm_suspect
  FROM v_runs b JOIN v_runs c ON c.workload = b.workload
    JOIN v_launch_times bt ON bt.run = b.run JOIN v_launch_times ct ON ct.run = c.run);

-- The fp32 run of a job (the first, if there are several) against every other run of the same workload in it.
DROP VIEW v_comparisons;
CREATE VIEW v_comparisons AS
SELECT baseline_job AS job, baseline_device AS device, *
FROM v_pairs
WHERE candidate_job = baseline_job AND candidate_run <> baseline_run AND baseline_run = (
  SELECT id FROM runs WHERE job_id = baseline_job AND workload = v_pairs.workload AND variant = 'fp32' ORDER BY ordinal LIMIT 1);

PRAGMA user_version = 11;
