-- Returns the value of :metric in each run of job :job, in the order of the runs. Columns: variant, value, SM cycles, reason for
-- which the value is dropped or missing, other processes that used the device. Times are dropped if they are suspect or the
-- device was throttled. Sizes and accuracies are not dropped, because neither throttling nor other processes affect them.
SELECT variant, value, cycles, CASE
  WHEN value IS NULL THEN coalesce(value_reason, 'the run did not measure ' || :metric)
  WHEN is_time THEN coalesce(suspect_reason, iif(throttled IS NULL, NULL,
    printf('GPU throttled during timing (%s)', throttled))) END,
  iif(is_time, (
    SELECT processes FROM v_other_processes WHERE v_other_processes.run = value_run), NULL)
FROM (
  SELECT ordinal, run AS value_run, variant, is_time,
    CASE :metric
      WHEN 'epoch_ms_median' THEN v_run_values.epoch_ms_median
      WHEN 'epoch_ms_min' THEN v_run_values.epoch_ms_min
      WHEN 'images_per_s' THEN v_run_values.images_per_s
      WHEN 'peak_memory_bytes' THEN v_run_values.peak_memory_bytes
      WHEN 'test_accuracy_ratio' THEN v_run_values.test_accuracy_ratio
      WHEN 'train_loss' THEN v_run_values.train_loss
      WHEN 'test_loss' THEN v_run_values.test_loss
      WHEN 'launches_per_step' THEN v_run_values.launches_per_step
      WHEN 'launch_gap_ratio' THEN v_run_values.launch_gap_ratio
      WHEN 'time_cold_us_median' THEN v_run_values.time_cold_us_median
      WHEN 'time_warm_us_median' THEN v_run_values.time_warm_us_median
      ELSE (SELECT measurement.value FROM passes pass JOIN measurements measurement ON measurement.pass_id = pass.id
        AND measurement.name = :metric
            WHERE pass.run_id = v_run_values.run ORDER BY pass.ordinal LIMIT 1) END AS value,
    CASE
      WHEN :metric IN ('epoch_ms_median', 'epoch_ms_min') THEN
        (SELECT avg(epoch.epoch_ms * (epoch.sm_clock_before_mhz + epoch.sm_clock_after_mhz) * 500.0)
         FROM passes pass JOIN epochs epoch ON epoch.pass_id = pass.id WHERE pass.run_id = v_run_values.run AND pass.ordinal = 0
           AND epoch.warmup = 0)
      WHEN :metric IN ('time_cold_us_median', 'time_warm_us_median') THEN
        (SELECT measurement.value * iif(:metric = 'time_cold_us_median', v_run_values.time_cold_us_median,
          v_run_values.time_warm_us_median)
         FROM passes pass JOIN measurements measurement ON measurement.pass_id = pass.id
           AND measurement.name = 'sm_clock_most_mhz'
         WHERE pass.run_id = v_run_values.run AND pass.ordinal = 0) END AS cycles,
    CASE :metric
      WHEN 'peak_memory_bytes' THEN v_run_values.peak_memory_reason
      WHEN 'test_accuracy_ratio' THEN v_run_values.test_accuracy_reason
      WHEN 'launches_per_step' THEN v_run_values.launches_per_step_reason
      WHEN 'launch_gap_ratio' THEN v_run_values.launch_gap_reason
      WHEN 'epoch_ms_median' THEN v_run_values.epoch_ms_median_reason
      WHEN 'time_cold_us_median' THEN v_run_values.time_cold_reason
      WHEN 'time_warm_us_median' THEN v_run_values.time_warm_reason
      ELSE (SELECT measurement.reason FROM passes pass JOIN measurements measurement ON measurement.pass_id = pass.id
        AND measurement.name = :metric
            WHERE pass.run_id = v_run_values.run ORDER BY pass.ordinal LIMIT 1) END AS value_reason,
    CASE
      WHEN :metric GLOB 'time_cold_*' THEN v_run_values.cold_suspect_reason
      WHEN :metric GLOB 'time_warm_*' THEN v_run_values.warm_suspect_reason
      ELSE v_run_values.suspect_reason END AS suspect_reason,
    (SELECT replace(replace(replace(replace(group_concat(DISTINCT throttle_reason.value), 'sw_', 'SW '), 'hw_', 'HW '),
      '_', ' '), ',', ', ')
     FROM passes pass JOIN epochs epoch ON epoch.pass_id = pass.id
       JOIN json_each('["' || replace(epoch.throttle_reasons, ',', '","') || '"]') throttle_reason
     WHERE pass.run_id = v_run_values.run AND pass.ordinal = 0 AND epoch.warmup = 0
       -- The reasons gpu_idle and applications_clocks_setting do not slow a busy GPU.
       AND throttle_reason.value NOT IN ('', 'gpu_idle', 'applications_clocks_setting')) AS throttled
  FROM v_run_values JOIN (
    SELECT :metric GLOB '*_[mu]s' OR :metric GLOB '*_[mu]s_*' OR :metric GLOB '*_per_s' AS is_time)
  WHERE v_run_values.job = :job)
ORDER BY ordinal
