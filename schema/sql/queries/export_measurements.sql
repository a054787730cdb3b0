-- Returns the measured numbers of the runs of job :job, or of its run :run (NULL: all runs), sorted by name.
-- Columns: name, value, run, pass, workload, variant, id of the device, name of the device, commit.
WITH finished AS MATERIALIZED ( -- the completed passes
  SELECT pass.id AS pass_id, pass.name AS pass, pass.ordinal, pass.git_commit, device_row.name AS device_name, run.id AS run,
    run.ordinal AS run_ordinal,
    run.workload, run.variant, job.device
  FROM jobs job JOIN runs run ON run.job_id = job.id JOIN passes pass ON pass.run_id = run.id LEFT JOIN devices device_row
    ON device_row.id = pass.device_id
  WHERE job.id = :job AND (:run IS NULL OR run.id = :run) AND pass.state = 'completed')
SELECT measurement.name, measurement.value, run, pass, workload, variant, device, device_name, git_commit, run_ordinal, ordinal
FROM finished CROSS JOIN measurements measurement USING (pass_id) WHERE measurement.value IS NOT NULL
UNION ALL -- numbers of the epochs, which are not in the table measurements
SELECT summary_value.key, summary_value.value, run, pass, workload, variant, device, device_name, git_commit, run_ordinal, ordinal
FROM finished CROSS JOIN run_summaries summary ON summary.run_id = run
  CROSS JOIN json_each(json_object(
    'epoch_ms_median', summary.epoch_ms_median, 'epoch_ms_min', summary.epoch_ms_min, 'images_per_s', summary.images_per_s,
    'test_accuracy_ratio', summary.test_accuracy_ratio, 'train_loss', summary.train_loss,
      'test_loss', summary.test_loss)) summary_value
WHERE ordinal = 0 AND summary_value.value IS NOT NULL
ORDER BY 1, 10, 11
