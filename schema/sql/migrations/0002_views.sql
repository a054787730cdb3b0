-- What people query with the sqlite3 shell (docs/schema.md) and what the API's summaries and comparisons are read from.

CREATE VIEW v_epochs AS
SELECT p.job_id AS job, p.run_id AS run, r.workload, r.variant, r.engine, j.device, p.finished_at AS at, e.epoch, e.warmup,
  e.epoch_ms, e.images * 1000 / e.epoch_ms AS images_per_s, e.device_ms, e.host_ms, e.evaluation_ms, e.images, e.train_loss,
  e.test_loss, e.test_accuracy_ratio, e.loss_scale, e.skipped_steps, e.sm_clock_before_mhz, e.sm_clock_after_mhz,
  e.memory_clock_mhz, e.temperature_c, e.power_w, e.throttle_reasons, e.unavailable, e.suspect, e.suspect_reason, r.partial
FROM epochs e JOIN passes p ON p.id = e.pass_id JOIN runs r ON r.id = p.run_id JOIN jobs j ON j.id = p.job_id;

CREATE VIEW v_measurements AS
SELECT p.job_id AS job, p.run_id AS run, r.workload, r.variant, r.engine, j.device, p.finished_at AS at, p.name AS pass, m.name,
  m.value, m.reason
FROM measurements m JOIN passes p ON p.id = m.pass_id JOIN runs r ON r.id = p.run_id JOIN jobs j ON j.id = p.job_id;

CREATE VIEW v_kernels AS
SELECT p.job_id AS job, p.run_id AS run, r.workload, r.variant, r.engine, j.device, p.name AS pass, k.ordinal, k.launch, k.phase,
  k.name, k.launches, k.total_us, k.min_us, k.median_us, k.max_us, k.share_ratio, k.registers_per_thread, k.static_shared_bytes,
  k.dynamic_shared_bytes, k.grid_x, k.grid_y, k.grid_z, k.block_x, k.block_y, k.block_z, k.theoretical_occupancy_ratio, k.reason,
  (SELECT json_group_object(metric, value) FROM kernel_metrics WHERE kernel_id = k.id) AS metrics
FROM kernels k JOIN passes p ON p.id = k.pass_id JOIN runs r ON r.id = p.run_id JOIN jobs j ON j.id = p.job_id;

CREATE VIEW v_activity AS
SELECT p.job_id AS job, p.run_id AS run, k.name AS kind, n.name, a.start_ns, a.end_ns, a.end_ns - a.start_ns AS duration_ns,
  nullif(a.stream, 0) AS stream, nullif(a.correlation, 0) AS correlation, nullif(a.graph_node, 0) AS graph_node, a.grid_x, a.grid_y,
  a.grid_z, a.block_x, a.block_y, a.block_z, a.registers, a.static_shared_bytes, a.dynamic_shared_bytes, a.bytes
FROM activity a JOIN activity_kinds k ON k.kind = a.kind JOIN names n ON n.pass_id = a.pass_id AND n.ordinal = a.name
  JOIN passes p ON p.id = a.pass_id;

-- One row a run. Times are over the timing pass's epochs without warm-up; accuracy is the last epoch's. What is NULL has its reason in
-- unavailable, a JSON object {column: reason}.
CREATE VIEW v_runs AS
SELECT job, run, job_state, workload, variant, "precision", batch_size, seed, engine, dataset, "partial", deterministic, device,
  device_name, git_commit, at, epochs, epoch_ms_median, epoch_ms_min, images_per_epoch * 1000 / epoch_ms_median AS images_per_s,
  peak_memory_bytes, test_accuracy_ratio, train_loss, test_loss, launches_per_step, launch_gap_ratio, suspect, suspect_reason,
  json_patch('{}', json_object( -- a merge patch drops what is null
    'epoch_ms_median', iif(epoch_ms_median IS NULL, timing_reason, NULL),
    'epoch_ms_min', iif(epoch_ms_min IS NULL, timing_reason, NULL),
    'images_per_s', iif(epoch_ms_median IS NULL OR images_per_epoch IS NULL, timing_reason, NULL),
    'peak_memory_bytes', iif(peak_memory_bytes IS NULL, coalesce(peak_memory_reason, timing_reason), NULL),
    'test_accuracy_ratio', iif(test_accuracy_ratio IS NULL, coalesce(epoch_unavailable ->> '$.test_accuracy_ratio', timing_reason), NULL),
    'launches_per_step', iif(launches_per_step IS NULL, coalesce(launches_per_step_reason, timing_reason), NULL),
    'launch_gap_ratio', iif(launch_gap_ratio IS NULL, coalesce(launch_gap_reason, activity_reason), NULL))) AS unavailable
FROM (
  SELECT r.job_id AS job, r.id AS run, j.state AS job_state, r.workload, r.variant, r."precision", r.batch_size, r.seed, r.engine,
    r.dataset, r."partial", r.deterministic, j.device, d.name AS device_name, t.git_commit, t.finished_at AS at,
    (SELECT count(*) FROM epochs e WHERE e.pass_id = t.id AND e.warmup = 0) AS epochs,
    (SELECT avg(epoch_ms) FROM (
       SELECT e.epoch_ms, row_number() OVER (ORDER BY e.epoch_ms) AS place, count(*) OVER () AS n
       FROM epochs e WHERE e.pass_id = t.id AND e.warmup = 0 AND e.epoch_ms IS NOT NULL)
     WHERE place IN ((n + 1) / 2, (n + 2) / 2)) AS epoch_ms_median,
    (SELECT min(e.epoch_ms) FROM epochs e WHERE e.pass_id = t.id AND e.warmup = 0) AS epoch_ms_min,
    (SELECT avg(e.images) FROM epochs e WHERE e.pass_id = t.id AND e.warmup = 0) AS images_per_epoch,
    (SELECT max(e.suspect) FROM epochs e WHERE e.pass_id = t.id AND e.warmup = 0) AS suspect,
    (SELECT min(e.suspect_reason) FROM epochs e WHERE e.pass_id = t.id AND e.warmup = 0) AS suspect_reason,
    last.test_accuracy_ratio, last.train_loss, last.test_loss, last.unavailable AS epoch_unavailable,
    peak.value AS peak_memory_bytes, peak.reason AS peak_memory_reason,
    launches.value AS launches_per_step, launches.reason AS launches_per_step_reason,
    gap.value AS launch_gap_ratio, gap.reason AS launch_gap_reason,
    CASE WHEN t.id IS NULL THEN 'the job did not ask for the timing pass'
         WHEN t.state = 'unavailable' THEN t.reason
         WHEN t.state <> 'completed' THEN 'the timing pass is ' || t.state
         ELSE 'the timing pass did not measure it' END AS timing_reason,
    CASE WHEN a.id IS NULL THEN 'the job did not ask for the activity pass'
         WHEN a.state = 'unavailable' THEN a.reason
         WHEN a.state <> 'completed' THEN 'the activity pass is ' || a.state
         ELSE 'the activity pass did not measure it' END AS activity_reason
  FROM runs r JOIN jobs j ON j.id = r.job_id
    LEFT JOIN passes t ON t.run_id = r.id AND t.ordinal = 0
    LEFT JOIN passes a ON a.run_id = r.id AND a.ordinal = 1
    LEFT JOIN devices d ON d.id = coalesce(t.device_id, a.device_id)
    LEFT JOIN epochs last ON last.pass_id = t.id AND last.epoch = (SELECT max(epoch) FROM epochs WHERE pass_id = t.id)
    LEFT JOIN measurements peak ON peak.pass_id = t.id AND peak.name = 'peak_memory_bytes'
    LEFT JOIN measurements launches ON launches.pass_id = t.id AND launches.name = 'launches_per_step'
    LEFT JOIN measurements gap ON gap.pass_id = a.id AND gap.name = 'launch_gap_ratio');

-- The fp32 run of a job (the first, if there are several) against every other run of the same workload in it. Ratios of a suspect time
-- are NULL: a result faster than its floor is no baseline and no success.
CREATE VIEW v_comparisons AS
SELECT job, workload, device, baseline_run, baseline_variant, candidate_run, candidate_variant,
  baseline_epoch_ms_median, candidate_epoch_ms_median, baseline_epoch_ms_min, candidate_epoch_ms_min,
  baseline_images_per_s, candidate_images_per_s,
  iif(time_suspect IS NULL, baseline_epoch_ms_median / candidate_epoch_ms_median, NULL) AS speedup_ratio,
  iif(time_suspect IS NULL, baseline_epoch_ms_min / candidate_epoch_ms_min, NULL) AS speedup_min_ratio,
  baseline_peak_memory_bytes, candidate_peak_memory_bytes,
  candidate_peak_memory_bytes / baseline_peak_memory_bytes AS peak_memory_ratio,
  baseline_test_accuracy_ratio, candidate_test_accuracy_ratio,
  candidate_test_accuracy_ratio - baseline_test_accuracy_ratio AS test_accuracy_difference_ratio,
  baseline_launches_per_step, candidate_launches_per_step, baseline_launch_gap_ratio, candidate_launch_gap_ratio,
  baseline_unavailable, candidate_unavailable,
  json_patch('{}', json_object(
    'speedup_ratio', coalesce(time_suspect, baseline_variant || ': ' || (baseline_unavailable ->> '$.epoch_ms_median'),
                              candidate_variant || ': ' || (candidate_unavailable ->> '$.epoch_ms_median')),
    'speedup_min_ratio', coalesce(time_suspect, baseline_variant || ': ' || (baseline_unavailable ->> '$.epoch_ms_min'),
                                  candidate_variant || ': ' || (candidate_unavailable ->> '$.epoch_ms_min')),
    'peak_memory_ratio', coalesce(baseline_variant || ': ' || (baseline_unavailable ->> '$.peak_memory_bytes'),
                                  candidate_variant || ': ' || (candidate_unavailable ->> '$.peak_memory_bytes')),
    'test_accuracy_difference_ratio', coalesce(baseline_variant || ': ' || (baseline_unavailable ->> '$.test_accuracy_ratio'),
                                               candidate_variant || ': ' || (candidate_unavailable ->> '$.test_accuracy_ratio')))) AS unavailable
FROM (
  SELECT b.job, b.workload, b.device, b.run AS baseline_run, c.run AS candidate_run, b.variant AS baseline_variant, c.variant AS candidate_variant,
    b.epoch_ms_median AS baseline_epoch_ms_median, c.epoch_ms_median AS candidate_epoch_ms_median,
    b.epoch_ms_min AS baseline_epoch_ms_min, c.epoch_ms_min AS candidate_epoch_ms_min,
    b.images_per_s AS baseline_images_per_s, c.images_per_s AS candidate_images_per_s,
    b.peak_memory_bytes AS baseline_peak_memory_bytes, c.peak_memory_bytes AS candidate_peak_memory_bytes,
    b.test_accuracy_ratio AS baseline_test_accuracy_ratio, c.test_accuracy_ratio AS candidate_test_accuracy_ratio,
    b.launches_per_step AS baseline_launches_per_step, c.launches_per_step AS candidate_launches_per_step,
    b.launch_gap_ratio AS baseline_launch_gap_ratio, c.launch_gap_ratio AS candidate_launch_gap_ratio,
    b.unavailable AS baseline_unavailable, c.unavailable AS candidate_unavailable,
    coalesce(b.variant || ' is suspect: ' || b.suspect_reason, c.variant || ' is suspect: ' || c.suspect_reason) AS time_suspect
  FROM v_runs b JOIN v_runs c ON c.job = b.job AND c.workload = b.workload AND c.run <> b.run
  WHERE b.run = (SELECT id FROM runs WHERE job_id = b.job AND workload = b.workload AND variant = 'fp32' ORDER BY ordinal LIMIT 1));

PRAGMA user_version = 2;
