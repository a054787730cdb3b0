-- :job :run. The measured numbers of a job's runs, or of one run, by name. Columns: name, value, run, pass, workload, variant, device,
-- name of the device, commit.
WITH finished AS MATERIALIZED ( -- the completed passes
  SELECT p.id AS pass_id, p.name AS pass, p.ordinal, p.git_commit, d.name AS device_name, r.id AS run, r.ordinal AS run_ordinal,
    r.workload, r.variant, j.device
  FROM jobs j JOIN runs r ON r.job_id = j.id JOIN passes p ON p.run_id = r.id LEFT JOIN devices d ON d.id = p.device_id
  WHERE j.id = :job AND (:run IS NULL OR r.id = :run) AND p.state = 'completed')
SELECT m.name, m.value, run, pass, workload, variant, device, device_name, git_commit, run_ordinal, ordinal
FROM finished CROSS JOIN measurements m USING (pass_id) WHERE m.value IS NOT NULL
UNION ALL -- numbers of the epochs, which are not in the table measurements
SELECT e.key, e.value, run, pass, workload, variant, device, device_name, git_commit, run_ordinal, ordinal
FROM finished CROSS JOIN run_summaries s ON s.run_id = run
  CROSS JOIN json_each(json_object(
    'epoch_ms_median', s.epoch_ms_median, 'epoch_ms_min', s.epoch_ms_min, 'images_per_s', s.images_per_s,
    'test_accuracy_ratio', s.test_accuracy_ratio, 'train_loss', s.train_loss, 'test_loss', s.test_loss)) e
WHERE ordinal = 0 AND e.value IS NOT NULL
ORDER BY 1, 10, 11
