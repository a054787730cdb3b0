-- The views, for queries with the sqlite3 shell (docs/schema.md) and for the API. An upgrade drops and creates all of them.
-- If a number is NULL, a *_reason column or `unavailable`, a JSON object {column: reason}, has the reason.

-- The computation of run_summaries, the only one: other views read the stored rows. Times are those of the timing pass's epochs
-- without warm-up; losses and accuracy are the last epoch's.
CREATE VIEW v_run_summaries AS
SELECT run_id, epochs, epoch_ms_median, epoch_ms_min, images_per_epoch * 1000 / epoch_ms_median AS images_per_s,
  peak_memory_bytes, peak_memory_reason, test_accuracy_ratio,
  iif(test_accuracy_ratio IS NULL, epoch_unavailable ->> '$.test_accuracy_ratio', NULL) AS test_accuracy_reason, train_loss,
  test_loss, launches_per_step, launches_per_step_reason, launch_gap_ratio, launch_gap_reason, time_cold_us_median,
  time_cold_reason, time_warm_us_median, time_warm_reason, suspect, suspect_reason, cold_suspect_reason, warm_suspect_reason
FROM (
  SELECT r.id AS run_id,
    (SELECT count(*) FROM epochs e WHERE e.pass_id = t.id AND e.warmup = 0) AS epochs,
    (SELECT avg(epoch_ms) FROM (
       SELECT e.epoch_ms, row_number() OVER (ORDER BY e.epoch_ms) AS rank, count(*) OVER () AS n
       FROM epochs e WHERE e.pass_id = t.id AND e.warmup = 0 AND e.epoch_ms IS NOT NULL)
     WHERE rank IN ((n + 1) / 2, (n + 2) / 2)) AS epoch_ms_median,
    (SELECT min(e.epoch_ms) FROM epochs e WHERE e.pass_id = t.id AND e.warmup = 0) AS epoch_ms_min,
    (SELECT avg(e.images) FROM epochs e WHERE e.pass_id = t.id AND e.warmup = 0) AS images_per_epoch,
    EXISTS (SELECT 1 FROM epochs e WHERE e.pass_id = t.id AND e.warmup = 0 AND e.suspect = 1)
      OR EXISTS (SELECT 1 FROM samples s WHERE s.pass_id = t.id AND s.suspect = 1) AS suspect,
    coalesce((SELECT min(e.suspect_reason) FROM epochs e WHERE e.pass_id = t.id AND e.warmup = 0 AND e.suspect = 1),
             (SELECT min(s.suspect_reason) FROM samples s WHERE s.pass_id = t.id AND s.suspect = 1)) AS suspect_reason,
    (SELECT min(s.suspect_reason) FROM samples s
     WHERE s.pass_id = t.id AND s.suspect = 1 AND s.mode = 'cold') AS cold_suspect_reason,
    (SELECT min(s.suspect_reason) FROM samples s
     WHERE s.pass_id = t.id AND s.suspect = 1 AND s.mode = 'warm') AS warm_suspect_reason,
    last.test_accuracy_ratio, last.train_loss, last.test_loss, last.unavailable AS epoch_unavailable,
    peak.value AS peak_memory_bytes, peak.reason AS peak_memory_reason,
    launches.value AS launches_per_step, launches.reason AS launches_per_step_reason,
    gap.value AS launch_gap_ratio, gap.reason AS launch_gap_reason,
    cold.value AS time_cold_us_median, cold.reason AS time_cold_reason,
    warm.value AS time_warm_us_median, warm.reason AS time_warm_reason
  FROM runs r
    LEFT JOIN passes t ON t.run_id = r.id AND t.ordinal = 0
    LEFT JOIN passes a ON a.run_id = r.id AND a.ordinal = 1
    LEFT JOIN epochs last ON last.pass_id = t.id AND last.epoch = (SELECT max(epoch) FROM epochs WHERE pass_id = t.id)
    LEFT JOIN measurements peak ON peak.pass_id = t.id AND peak.name = 'peak_memory_bytes'
    LEFT JOIN measurements launches ON launches.pass_id = t.id AND launches.name = 'launches_per_step'
    LEFT JOIN measurements gap ON gap.pass_id = a.id AND gap.name = 'launch_gap_ratio'
    LEFT JOIN measurements cold ON cold.pass_id = t.id AND cold.name = 'time_cold_us_median'
    LEFT JOIN measurements warm ON warm.pass_id = t.id AND warm.name = 'time_warm_us_median');

-- One row for each run with its stored summary. A number that is NULL has its reason in its *_reason column. A run without a
-- committed pass has no stored summary.
CREATE VIEW v_run_values AS
SELECT *, json_patch('{}', json_object( -- json_patch drops members that are null
  'epoch_ms_median', epoch_ms_median_reason, 'epoch_ms_min', epoch_ms_min_reason, 'images_per_s', images_per_s_reason,
  'peak_memory_bytes', peak_memory_reason, 'test_accuracy_ratio', test_accuracy_reason,
  'launches_per_step', launches_per_step_reason, 'launch_gap_ratio', launch_gap_reason)) AS unavailable
FROM (
  SELECT job, run, job_kind, job_state, ordinal, workload, variant, "precision", batch_size, seed, engine, dataset, "partial",
    deterministic, device, device_name, git_commit, at, coalesce(epochs, 0) AS epochs, epoch_ms_median, epoch_ms_min,
    images_per_s, peak_memory_bytes, test_accuracy_ratio, train_loss, test_loss, launches_per_step, launch_gap_ratio,
    time_cold_us_median, time_warm_us_median, coalesce(suspect, 0) AS suspect, suspect_reason, cold_suspect_reason,
    warm_suspect_reason,
    iif(epoch_ms_median IS NULL, timing_reason, NULL) AS epoch_ms_median_reason,
    iif(epoch_ms_min IS NULL, timing_reason, NULL) AS epoch_ms_min_reason,
    iif(images_per_s IS NULL, timing_reason, NULL) AS images_per_s_reason,
    iif(peak_memory_bytes IS NULL, coalesce(peak_memory_reason, timing_reason), NULL) AS peak_memory_reason,
    iif(test_accuracy_ratio IS NULL, coalesce(test_accuracy_reason, timing_reason), NULL) AS test_accuracy_reason,
    iif(launches_per_step IS NULL, coalesce(launches_per_step_reason, timing_reason), NULL) AS launches_per_step_reason,
    iif(launch_gap_ratio IS NULL, coalesce(launch_gap_reason, activity_reason), NULL) AS launch_gap_reason,
    iif(time_cold_us_median IS NULL, coalesce(time_cold_reason, timing_reason), NULL) AS time_cold_reason,
    iif(time_warm_us_median IS NULL, coalesce(time_warm_reason, timing_reason), NULL) AS time_warm_reason
  FROM (
    SELECT r.job_id AS job, r.id AS run, r.ordinal, j.kind AS job_kind, j.state AS job_state, r.workload, r.variant,
      r."precision", r.batch_size, r.seed, r.engine, r.dataset, r."partial", r.deterministic, j.device, d.name AS device_name,
      t.git_commit, t.finished_at AS at, s.*,
      CASE WHEN t.id IS NULL THEN 'the job did not ask for the timing pass'
           WHEN t.state = 'unavailable' THEN t.reason
           WHEN t.state <> 'completed' THEN 'the timing pass is ' || t.state
           ELSE 'the timing pass did not measure it' END AS timing_reason,
      CASE WHEN a.id IS NULL THEN 'the job did not ask for the activity pass'
           WHEN a.state = 'unavailable' THEN a.reason
           WHEN a.state <> 'completed' THEN 'the activity pass is ' || a.state
           ELSE 'the activity pass did not measure it' END AS activity_reason
    FROM runs r CROSS JOIN jobs j ON j.id = r.job_id
      LEFT JOIN passes t ON t.run_id = r.id AND t.ordinal = 0
      LEFT JOIN passes a ON a.run_id = r.id AND a.ordinal = 1
      LEFT JOIN devices d ON d.id = coalesce(t.device_id, a.device_id)
      LEFT JOIN run_summaries s ON s.run_id = r.id));

-- One row for each run.
CREATE VIEW v_runs AS
SELECT job, run, job_state, workload, variant, "precision", batch_size, seed, engine, dataset, "partial", deterministic, device,
  device_name, git_commit, at, epochs, epoch_ms_median, epoch_ms_min, images_per_s, peak_memory_bytes, test_accuracy_ratio,
  train_loss, test_loss, launches_per_step, launch_gap_ratio, suspect, suspect_reason, unavailable
FROM v_run_values;

-- One row for each run: the medians of its samples with a cold and with a warm cache.
CREATE VIEW v_launch_times AS
SELECT run, time_cold_us_median AS cold_us, time_warm_us_median AS warm_us, time_cold_reason AS cold_reason,
  time_warm_reason AS warm_reason, cold_suspect_reason AS cold_suspect, warm_suspect_reason AS warm_suspect
FROM v_run_values;

-- One row for each ordered pair of runs of the same workload, also of different jobs; filter by both runs, or by a job. A ratio
-- with a suspect time is NULL, because a time below its floor is wrong.
CREATE VIEW v_pairs AS
SELECT workload, baseline_job, baseline_run, baseline_device, baseline_variant,
  candidate_job, candidate_run, candidate_device, candidate_variant,
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
  baseline_engine, candidate_engine, baseline_dataset, candidate_dataset, baseline_partial, candidate_partial,
  baseline_suspect, candidate_suspect, baseline_unavailable, candidate_unavailable,
  json_patch('{}', json_object( -- json_patch drops members that are null
    'speedup_ratio', coalesce(epoch_suspect, baseline_name || baseline_epoch_ms_median_reason,
                              candidate_name || candidate_epoch_ms_median_reason),
    'speedup_min_ratio', coalesce(epoch_suspect, baseline_name || baseline_epoch_ms_min_reason,
                                  candidate_name || candidate_epoch_ms_min_reason),
    'speedup_cold_ratio', coalesce(cold_suspect, baseline_name || baseline_cold_reason, candidate_name || candidate_cold_reason),
    'speedup_warm_ratio', coalesce(warm_suspect, baseline_name || baseline_warm_reason, candidate_name || candidate_warm_reason),
    'peak_memory_ratio', coalesce(baseline_name || baseline_peak_memory_reason, candidate_name || candidate_peak_memory_reason),
    'test_accuracy_difference_ratio', coalesce(baseline_name || baseline_test_accuracy_reason,
                                               candidate_name || candidate_test_accuracy_reason))) AS unavailable
FROM (
  SELECT b.workload, b.job AS baseline_job, c.job AS candidate_job, b.run AS baseline_run, c.run AS candidate_run,
    b.device AS baseline_device, c.device AS candidate_device, b.variant AS baseline_variant, c.variant AS candidate_variant,
    b.variant || iif(b.variant = c.variant, ' of run ' || b.run, '') || ': ' AS baseline_name,
    c.variant || iif(b.variant = c.variant, ' of run ' || c.run, '') || ': ' AS candidate_name,
    b.epoch_ms_median AS baseline_epoch_ms_median, c.epoch_ms_median AS candidate_epoch_ms_median,
    b.epoch_ms_min AS baseline_epoch_ms_min, c.epoch_ms_min AS candidate_epoch_ms_min,
    b.images_per_s AS baseline_images_per_s, c.images_per_s AS candidate_images_per_s,
    b.time_cold_us_median AS baseline_time_cold_us_median, c.time_cold_us_median AS candidate_time_cold_us_median,
    b.time_warm_us_median AS baseline_time_warm_us_median, c.time_warm_us_median AS candidate_time_warm_us_median,
    b.peak_memory_bytes AS baseline_peak_memory_bytes, c.peak_memory_bytes AS candidate_peak_memory_bytes,
    b.test_accuracy_ratio AS baseline_test_accuracy_ratio, c.test_accuracy_ratio AS candidate_test_accuracy_ratio,
    b.launches_per_step AS baseline_launches_per_step, c.launches_per_step AS candidate_launches_per_step,
    b.launch_gap_ratio AS baseline_launch_gap_ratio, c.launch_gap_ratio AS candidate_launch_gap_ratio,
    b.engine AS baseline_engine, c.engine AS candidate_engine, b.dataset AS baseline_dataset, c.dataset AS candidate_dataset,
    b."partial" AS baseline_partial, c."partial" AS candidate_partial,
    b.suspect AS baseline_suspect, c.suspect AS candidate_suspect,
    b.unavailable AS baseline_unavailable, c.unavailable AS candidate_unavailable,
    b.epoch_ms_median_reason AS baseline_epoch_ms_median_reason, c.epoch_ms_median_reason AS candidate_epoch_ms_median_reason,
    b.epoch_ms_min_reason AS baseline_epoch_ms_min_reason, c.epoch_ms_min_reason AS candidate_epoch_ms_min_reason,
    b.peak_memory_reason AS baseline_peak_memory_reason, c.peak_memory_reason AS candidate_peak_memory_reason,
    b.test_accuracy_reason AS baseline_test_accuracy_reason, c.test_accuracy_reason AS candidate_test_accuracy_reason,
    b.time_cold_reason AS baseline_cold_reason, c.time_cold_reason AS candidate_cold_reason,
    b.time_warm_reason AS baseline_warm_reason, c.time_warm_reason AS candidate_warm_reason,
    coalesce(b.variant || ' is suspect: ' || b.suspect_reason,
             c.variant || ' is suspect: ' || c.suspect_reason) AS epoch_suspect,
    coalesce(b.variant || ' is suspect: ' || b.cold_suspect_reason,
             c.variant || ' is suspect: ' || c.cold_suspect_reason) AS cold_suspect,
    coalesce(b.variant || ' is suspect: ' || b.warm_suspect_reason,
             c.variant || ' is suspect: ' || c.warm_suspect_reason) AS warm_suspect
  FROM v_run_values b JOIN v_run_values c ON c.workload = b.workload);

-- One row for each run of a job that has another run as its baseline: the first fp32 run of the same workload in the job.
CREATE VIEW v_baselines AS
SELECT job, baseline_run, candidate_run
FROM (
  SELECT c.job_id AS job, c.id AS candidate_run, (
    SELECT b.id FROM runs b
    WHERE b.job_id = c.job_id AND b.workload = c.workload AND b.variant = 'fp32' ORDER BY b.ordinal LIMIT 1) AS baseline_run
  FROM runs c)
WHERE baseline_run <> candidate_run;

-- The pairs of v_pairs in which the baseline is that of v_baselines.
CREATE VIEW v_comparisons AS
SELECT b.job, p.baseline_device AS device, p.*
FROM v_baselines b CROSS JOIN v_pairs p ON p.baseline_run = b.baseline_run AND p.candidate_run = b.candidate_run;

-- One row for each job: its item in the list of jobs. jobs.listing is the stored text of a job that waits or has ended.
CREATE VIEW v_listings AS
SELECT j.id AS job, json_object(
  'id', j.id, 'kind', j.kind, 'origin', j.origin, 'state', j.state, 'device', j.device,
  'created_at', j.created_at, 'started_at', j.started_at, 'finished_at', j.finished_at,
  'passes', json((SELECT json_object('total', count(*), 'pending', count(*) FILTER (WHERE state = 'pending'),
                                     'running', count(*) FILTER (WHERE state = 'running'),
                                     'completed', count(*) FILTER (WHERE state = 'completed'),
                                     'unavailable', count(*) FILTER (WHERE state = 'unavailable'))
                  FROM passes WHERE job_id = j.id)),
  'problem', json(iif(j.problem_message IS NULL, 'null', json_object(
    'domain', j.problem_domain, 'code', j.problem_code, 'message', j.problem_message))),
  'name', coalesce(nullif(j.request ->> '$.name', ''), j.request ->> '$.file_name'),
  'tags', json(coalesce(j.request -> '$.tags', '[]')),
  'workload', first.workload, 'engine', first.engine, 'entry', j.request ->> '$.entry', 'grid', json(j.request -> '$.grid'),
  'block', json(j.request -> '$.block'),
  'parameters', json(iif(j.kind IN ('train', 'layer'), first.nondefault_params, NULL)),
  'dtype', first.params ->> '$.dtype', 'shape', json(first.params -> '$.shape'),
  'batch_size', first.params ->> '$.batch_size',
  'runs', json((SELECT json_group_array(json_object('id', id, 'variant', variant))
                FROM (SELECT id, variant FROM runs WHERE job_id = j.id ORDER BY ordinal))),
  'fastest', json(coalesce((
    SELECT json_object('run', run, 'variant', variant, 'epoch_ms_median', iif(job_kind = 'train', epoch_ms_median, NULL),
                       'time_cold_us_median', iif(job_kind = 'train', NULL, time_cold_us_median))
    FROM v_run_values v
    WHERE v.job = j.id AND iif(job_kind = 'train', epoch_ms_median IS NOT NULL AND NOT suspect,
                               time_cold_us_median IS NOT NULL AND cold_suspect_reason IS NULL)
    ORDER BY iif(job_kind = 'train', epoch_ms_median, time_cold_us_median) LIMIT 1), 'null'))) AS listing
FROM jobs j LEFT JOIN runs first ON first.job_id = j.id AND first.ordinal = 0;

-- The computation of history: one row for each completed pass. metrics: the sorted names of what it measured.
CREATE VIEW v_history AS
SELECT p.id AS pass_id, p.run_id, p.finished_ns, r.workload, r.variant, r.nondefault_params, j.device,
  (SELECT json_group_array(name) FROM (
     SELECT name FROM measurements WHERE pass_id = p.id AND value IS NOT NULL
     UNION SELECT 'epoch_ms_median' WHERE p.ordinal = 0 AND s.epoch_ms_median IS NOT NULL
     UNION SELECT 'epoch_ms_min' WHERE p.ordinal = 0 AND s.epoch_ms_min IS NOT NULL
     UNION SELECT 'images_per_s' WHERE p.ordinal = 0 AND s.images_per_s IS NOT NULL
     UNION SELECT 'test_accuracy_ratio' WHERE p.ordinal = 0 AND s.test_accuracy_ratio IS NOT NULL)) AS metrics,
  json_object(
    'job', p.job_id, 'run', p.run_id, 'at', p.finished_at, 'workload', r.workload, 'variant', r.variant, 'engine', r.engine,
    'device', j.device, 'device_name', (
      SELECT d.name FROM passes q JOIN devices d ON d.id = q.device_id
      WHERE q.run_id = r.id AND q.ordinal IN (0, 1) ORDER BY q.ordinal LIMIT 1),
    'commit', p.git_commit, 'partial', json(CASE r."partial" WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'null' END),
    'suspect', json(iif(s.suspect, 'true', 'false'))) AS point
FROM runs r CROSS JOIN passes p ON p.run_id = r.id AND p.state = 'completed' CROSS JOIN jobs j ON j.id = r.job_id
  LEFT JOIN run_summaries s ON s.run_id = r.id;

CREATE VIEW v_epochs AS
SELECT p.job_id AS job, p.run_id AS run, r.workload, r.variant, r.engine, j.device, p.finished_at AS at, e.epoch, e.warmup,
  e.epoch_ms, e.images * 1000 / e.epoch_ms AS images_per_s, e.device_ms, e.host_ms, e.evaluation_ms, e.images, e.train_loss,
  e.test_loss, e.test_accuracy_ratio, e.loss_scale, e.skipped_steps, e.sm_clock_before_mhz, e.sm_clock_after_mhz,
  e.memory_clock_mhz, e.temperature_c, e.power_w, e.throttle_reasons, e.unavailable, e.suspect, e.suspect_reason, r.partial
FROM epochs e JOIN passes p ON p.id = e.pass_id JOIN runs r ON r.id = p.run_id JOIN jobs j ON j.id = p.job_id;

CREATE VIEW v_samples AS
SELECT p.job_id AS job, p.run_id AS run, r.workload, r.variant, r.params ->> '$.dtype' AS dtype, r.params -> '$.shape' AS shape,
  r.engine, j.device, p.finished_at AS at, p.name AS pass, s.mode, s.ordinal, s.device_us, s.suspect, s.suspect_reason
FROM samples s JOIN passes p ON p.id = s.pass_id JOIN runs r ON r.id = p.run_id JOIN jobs j ON j.id = p.job_id;

-- The newest ceilings pass of each device and driver. stale_reason is not NULL if the device reports another driver or other
-- clocks now.
CREATE VIEW v_ceiling_passes AS
SELECT p.job_id AS job, p.run_id AS run, p.id AS pass_id, j.device, devices.name AS device_name,
  devices.identity AS device_identity, devices.driver, p.finished_at AS at,
  unixepoch() - p.finished_ns / 1000000000 AS age_s, p.git_commit, devices.sm_clock_max_mhz, devices.memory_clock_max_mhz,
  CASE WHEN now.driver IS NOT devices.driver
       THEN printf('measured with driver %s, and the device has %s now', devices.driver, now.driver)
       WHEN now.sm_clock_max_mhz IS NOT devices.sm_clock_max_mhz OR now.memory_clock_max_mhz IS NOT devices.memory_clock_max_mhz
       THEN printf('measured with clocks of at most %g and %g MHz, and the device has %g and %g MHz now', devices.sm_clock_max_mhz,
                   devices.memory_clock_max_mhz, now.sm_clock_max_mhz, now.memory_clock_max_mhz)
       WHEN now.clock_setting IS NOT devices.clock_setting
       THEN printf('measured with the clocks set to %s, and the device has %s now',
                   coalesce(devices.clock_setting, 'unknown settings'), coalesce(now.clock_setting, 'unknown settings'))
       END AS stale_reason,
  devices.clock_setting
FROM devices
  CROSS JOIN passes p ON p.device_id = devices.id AND p.measures_ceilings = 1 AND p.state = 'completed' AND p.run_id = (
    SELECT max((SELECT max(run_id) FROM passes WHERE device_id = nd.id AND measures_ceilings = 1 AND state = 'completed'))
    FROM devices nd WHERE nd.identity = devices.identity AND nd.driver IS devices.driver)
  CROSS JOIN jobs j ON j.id = p.job_id
  CROSS JOIN devices now ON now.id = (
    SELECT cd.id FROM devices cd WHERE cd.identity = devices.identity ORDER BY cd.last_ns DESC LIMIT 1);

-- One row for each rate of the passes in v_ceiling_passes.
CREATE VIEW v_ceilings AS
SELECT c.job, c.run, c.device, c.device_name, c.device_identity, c.driver, c.at, c.age_s, c.git_commit, m.name, m.value, m.reason,
  c.sm_clock_max_mhz, c.memory_clock_max_mhz,
  (SELECT value FROM measurements WHERE pass_id = c.pass_id AND name = 'sm_clock_least_mhz') AS sm_clock_least_mhz,
  (SELECT value FROM measurements WHERE pass_id = c.pass_id AND name = 'temperature_c_most') AS temperature_c_most,
  (SELECT value FROM measurements WHERE pass_id = c.pass_id AND name = 'throttled_ratio') AS throttled_ratio, c.stale_reason
FROM v_ceiling_passes c JOIN measurements m ON m.pass_id = c.pass_id AND m.name GLOB '*_per_s';

-- The floor of an iteration (an epoch, or the launches of a kernel job): its minimum time according to the pass's ceilings. It is
-- the maximum of three terms, without unknown ones (NULL): operations, bytes from memory, and bytes from the last cache. Bytes
-- that the caches can hold are subtracted from the bytes from memory: any bytes if the caches are warm, only written bytes if
-- they are cold. Bytes that the caches above the last one can hold are subtracted from the bytes from the last cache in the same
-- way.
CREATE VIEW v_floors AS
SELECT job, run, pass_id, cache, ceilings_id, operations, operations_per_s, floor_ms,
  CASE floor_ms
    WHEN operations_ms THEN printf('%.6g operations in %s at %.6g/s', operations, "precision", operations_per_s)
    WHEN memory_ms THEN printf('%.6g bytes from memory at %.6g/s', memory_bytes, memory_bytes_per_s)
    WHEN cached_ms THEN printf('%.6g bytes from the last cache at %.6g/s', cached_bytes, cached_bytes_per_s) END AS arithmetic,
  CASE WHEN ceilings_id IS NULL THEN 'no ceilings of this device with its driver and clocks yet: run a job of the kind ceilings'
       WHEN floor_ms IS NULL THEN 'the ceilings have no rate for the minimum work of the workload' END AS reason
FROM (
  SELECT *, nullif(max(coalesce(operations_ms, 0), coalesce(memory_ms, 0), coalesce(cached_ms, 0)), 0) AS floor_ms
  FROM (
    SELECT *, operations / operations_per_s * 1000 AS operations_ms, memory_bytes / memory_bytes_per_s * 1000 AS memory_ms,
      cached_bytes / cached_bytes_per_s * 1000 AS cached_ms
    FROM (
      SELECT p.job_id AS job, p.run_id AS run, p.id AS pass_id, c.value AS cache, p.ceilings_id, r.floor_operations AS operations,
        r.floor_precision AS "precision",
        (SELECT max(m.value)
         FROM precision_rates u CROSS JOIN measurements m ON m.pass_id = p.ceilings_id AND m.name = u.name
         WHERE u."precision" = r.floor_precision) AS operations_per_s,
        r.floor_bytes - min(r.floor_bytes,
          coalesce(iif(c.value = 'cold', min(r.floor_written_bytes, d.cache_bytes), d.cache_bytes), r.floor_bytes))
          AS memory_bytes,
        (SELECT max(value) FROM measurements
         WHERE pass_id = p.ceilings_id AND name GLOB 'dram_*_bytes_per_s') AS memory_bytes_per_s,
        r.floor_bytes - min(r.floor_bytes,
          coalesce(iif(c.value = 'cold', min(r.floor_written_bytes, d.private_cache_bytes), d.private_cache_bytes),
                   r.floor_bytes))
          AS cached_bytes,
        (SELECT max(value) FROM measurements
         WHERE pass_id = p.ceilings_id AND name GLOB 'l[23]_*_bytes_per_s') AS cached_bytes_per_s
      FROM passes p JOIN runs r ON r.id = p.run_id JOIN devices d ON d.id = p.device_id
        CROSS JOIN json_each('["cold", "warm"]') c
      WHERE p.ordinal = 0)));

CREATE VIEW v_measurements AS
SELECT p.job_id AS job, p.run_id AS run, r.workload, r.variant, r.engine, j.device, p.finished_at AS at, p.name AS pass, m.name,
  m.value, m.reason
FROM measurements m JOIN passes p ON p.id = m.pass_id JOIN runs r ON r.id = p.run_id JOIN jobs j ON j.id = p.job_id;

CREATE VIEW v_kernels AS
SELECT p.job_id AS job, p.run_id AS run, r.workload, r.variant, r.engine, j.device, p.name AS pass, k.ordinal, k.launch, k.phase,
  k.name, k.launches, k.total_us, k.min_us, k.median_us, k.max_us, k.share_ratio, k.registers_per_thread, k.static_shared_bytes,
  k.dynamic_shared_bytes, k.grid_x, k.grid_y, k.grid_z, k.block_x, k.block_y, k.block_z, k.theoretical_occupancy_ratio, k.reason,
  (SELECT json_group_object(metric, value) FROM kernel_metrics WHERE kernel_id = k.id) AS metrics, k.code_sha256
FROM kernels k JOIN passes p ON p.id = k.pass_id JOIN runs r ON r.id = p.run_id JOIN jobs j ON j.id = p.job_id;

CREATE VIEW v_phases AS
SELECT p.job_id AS job, p.run_id AS run, r.workload, r.variant, r.engine, k.ordinal AS kernel, k.launch, f.position, f.name,
  f.phase, f.steps, f.blocks, f.mean_us, f.min_us, f.max_us, f.share_ratio
FROM phases f JOIN kernels k ON k.id = f.kernel_id JOIN passes p ON p.id = k.pass_id JOIN runs r ON r.id = p.run_id;

CREATE VIEW v_instructions AS
SELECT p.job_id AS job, p.run_id AS run, r.workload, r.variant, k.ordinal AS kernel, k.name, i."offset", i.opcode,
  i.sass, i.file, i.line, i.counts, i.reason
FROM instructions i JOIN kernels k ON k.id = i.kernel_id JOIN passes p ON p.id = k.pass_id JOIN runs r ON r.id = p.run_id;

CREATE VIEW v_series AS
SELECT p.job_id AS job, p.run_id AS run, r.workload, r.variant, k.ordinal AS kernel, k.name, s.name AS series, s.x, s.value
FROM series s JOIN kernels k ON k.id = s.kernel_id JOIN passes p ON p.id = k.pass_id JOIN runs r ON r.id = p.run_id;

-- CROSS JOIN keeps the order of the tables: a dictionary entry is looked up for each row, never the rows of an entry.
CREATE VIEW v_activity AS
SELECT p.job_id AS job, p.run_id AS run, k.name AS kind, n.name, a.start_ns, a.start_ns + a.duration_ns AS end_ns, a.duration_ns,
  nullif(d.stream, 0) AS stream, nullif(a.correlation, 0) AS correlation, nullif(d.graph_node, 0) AS graph_node, d.grid_x,
  d.grid_y, d.grid_z, d.block_x, d.block_y, d.block_z, d.registers, d.static_shared_bytes, d.dynamic_shared_bytes, d.bytes,
  nullif(a.step, 0) - 1 AS step, nullif(d.process, 0) AS process, nullif(d.thread, 0) AS thread,
  nullif(d.device, 0) - 1 AS device, nullif(d.context, 0) AS context,
  (SELECT name FROM memory_kinds WHERE kind = d.source_memory) AS source_memory,
  (SELECT name FROM memory_kinds WHERE kind = d.destination_memory) AS destination_memory,
  nullif(d.call_stream, 0) AS call_stream, nullif(d.event, 0) AS event
FROM passes p CROSS JOIN activity_groups g ON g.pass_id = p.id CROSS JOIN activity_kinds k ON k.kind = g.kind
  CROSS JOIN activity a ON a.pass_id = g.pass_id AND a.activity_group = g.activity_group
  CROSS JOIN activity_dictionary d ON d.pass_id = a.pass_id AND d.entry = a.entry
  CROSS JOIN names n ON n.pass_id = d.pass_id AND n.ordinal = d.name
WHERE p.activity_kept = 1;

-- The computation of suite_runs.listing.
CREATE VIEW v_suite_listings AS
SELECT r.id AS suite_run, json_object(
  'id', r.id, 'suite', r.suite, 'device', r.device, 'state', r.state, 'verdict', r.verdict, 'reason', r.reason,
  'quarantine_reason', r.quarantine_reason, 'against', r.against, 'created_at', r.created_at, 'started_at', r.started_at,
  'finished_at', r.finished_at, 'device_name', r.device_name, 'driver', r.driver, 'git_commit', r.git_commit,
  'counts', json((
    SELECT json_object('faster', count(*) FILTER (WHERE verdict = 'faster'), 'same', count(*) FILTER (WHERE verdict = 'same'),
                       'slower', count(*) FILTER (WHERE verdict = 'slower'),
                       'inconclusive', count(*) FILTER (WHERE verdict = 'inconclusive'),
                       'incomparable', count(*) FILTER (WHERE verdict = 'incomparable'))
    FROM suite_verdicts v WHERE v.suite_run_id = r.id))) AS listing
FROM suite_runs r;

-- One row for each run of a regression suite.
CREATE VIEW v_suite_runs AS
SELECT id AS suite_run, suite, device, device_name, driver, clock_setting, git_commit, state, verdict, reason, quarantine_reason,
  against, created_at, started_at, finished_at
FROM suite_runs;

-- One row for each value of a metric in a block of a suite run.
CREATE VIEW v_suite_values AS
SELECT suite_run_id AS suite_run, metric, role, block, value, cycles, dropped_reason, other_processes
FROM suite_values;

-- One row for each judged metric of a suite run. A ratio is current / baseline - 1.
CREATE VIEW v_suite_verdicts AS
SELECT suite_run_id AS suite_run, metric, verdict, judgement ->> '$.reason' AS reason, method_version,
  judgement ->> '$.baseline_median' AS baseline_median, judgement ->> '$.current_median' AS current_median,
  judgement ->> '$.effect_ratio' AS effect_ratio, judgement ->> '$.p_value' AS p_value, judgement ->> '$.q_value' AS q_value,
  judgement, causes
FROM suite_verdicts;
