-- :job :metric. The value of a metric in each run of a job, in order. Columns: variant, value, cycles, why it is dropped or
-- missing, which other processes used the device. Times are dropped if they are suspect or the device was throttled; sizes and
-- accuracies are kept, because neither throttling nor other processes affect them.
SELECT variant, value, cycles, CASE
  WHEN value IS NULL THEN coalesce(value_reason, 'the run did not measure ' || :metric)
  WHEN is_time THEN coalesce(suspect_reason, iif(throttled IS NULL, NULL, printf('GPU throttled during timing (%s)', throttled))) END,
  iif(is_time, (
    SELECT group_concat(printf('pid %s%s', replace(replace(m.name, 'other_process_', ''), '_memory_bytes', ''),
                               iif(m.value IS NULL, '', printf(' (%.0f MiB)', m.value / 1048576))), ', ')
    FROM passes p JOIN measurements m ON m.pass_id = p.id AND m.name GLOB 'other_process_*_memory_bytes'
    WHERE p.run_id = run AND p.ordinal = 0), NULL)
FROM (
  SELECT ordinal, run, variant, is_time,
    CASE :metric
      WHEN 'epoch_ms_median' THEN v.epoch_ms_median
      WHEN 'epoch_ms_min' THEN v.epoch_ms_min
      WHEN 'images_per_s' THEN v.images_per_s
      WHEN 'peak_memory_bytes' THEN v.peak_memory_bytes
      WHEN 'test_accuracy_ratio' THEN v.test_accuracy_ratio
      WHEN 'train_loss' THEN v.train_loss
      WHEN 'test_loss' THEN v.test_loss
      WHEN 'launches_per_step' THEN v.launches_per_step
      WHEN 'launch_gap_ratio' THEN v.launch_gap_ratio
      WHEN 'time_cold_us_median' THEN v.time_cold_us_median
      WHEN 'time_warm_us_median' THEN v.time_warm_us_median
      ELSE (SELECT m.value FROM passes p JOIN measurements m ON m.pass_id = p.id AND m.name = :metric
            WHERE p.run_id = v.run ORDER BY p.ordinal LIMIT 1) END AS value,
    CASE
      WHEN :metric IN ('epoch_ms_median', 'epoch_ms_min') THEN
        (SELECT avg(e.epoch_ms * (e.sm_clock_before_mhz + e.sm_clock_after_mhz) * 500.0)
         FROM passes p JOIN epochs e ON e.pass_id = p.id WHERE p.run_id = v.run AND p.ordinal = 0 AND e.warmup = 0)
      WHEN :metric IN ('time_cold_us_median', 'time_warm_us_median') THEN
        (SELECT m.value * iif(:metric = 'time_cold_us_median', v.time_cold_us_median, v.time_warm_us_median)
         FROM passes p JOIN measurements m ON m.pass_id = p.id AND m.name = 'sm_clock_most_mhz'
         WHERE p.run_id = v.run AND p.ordinal = 0) END AS cycles,
    CASE :metric
      WHEN 'peak_memory_bytes' THEN v.peak_memory_reason
      WHEN 'test_accuracy_ratio' THEN v.test_accuracy_reason
      WHEN 'launches_per_step' THEN v.launches_per_step_reason
      WHEN 'launch_gap_ratio' THEN v.launch_gap_reason
      WHEN 'epoch_ms_median' THEN v.epoch_ms_median_reason
      WHEN 'time_cold_us_median' THEN v.time_cold_reason
      WHEN 'time_warm_us_median' THEN v.time_warm_reason
      ELSE (SELECT m.reason FROM passes p JOIN measurements m ON m.pass_id = p.id AND m.name = :metric
            WHERE p.run_id = v.run ORDER BY p.ordinal LIMIT 1) END AS value_reason,
    CASE
      WHEN :metric GLOB 'time_cold_*' THEN v.cold_suspect_reason
      WHEN :metric GLOB 'time_warm_*' THEN v.warm_suspect_reason
      ELSE v.suspect_reason END AS suspect_reason,
    (SELECT replace(replace(replace(replace(group_concat(DISTINCT r.value), 'sw_', 'SW '), 'hw_', 'HW '), '_', ' '), ',', ', ')
     FROM passes p JOIN epochs e ON e.pass_id = p.id
       JOIN json_each('["' || replace(e.throttle_reasons, ',', '","') || '"]') r
     WHERE p.run_id = v.run AND p.ordinal = 0 AND e.warmup = 0
       AND r.value NOT IN ('', 'gpu_idle', 'applications_clocks_setting')) AS throttled -- the last two do not slow a busy GPU
  FROM v_run_values v JOIN (
    SELECT :metric GLOB '*_[mu]s' OR :metric GLOB '*_[mu]s_*' OR :metric GLOB '*_per_s' AS is_time)
  WHERE v.job = :job)
ORDER BY ordinal
