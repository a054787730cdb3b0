-- The views, for queries with the sqlite3 shell (docs/schema.md) and for the API. An upgrade drops and creates all of them. If a
-- measured number is NULL, a reason column (reason, *_reason) or `unavailable`, a JSON object {column: reason}, usually has the
-- reason. An ordinal of a pass is 0 for timing, 1 for activity and 2 for counters. Column at: time at which the pass finished.
-- Column partial: 1 if the run trained on fewer images than the data set has.

-- Computes the rows of the table run_summaries; other views read the stored rows. Epoch times and images_per_s come from the
-- timing pass's epochs without warm-up; losses and accuracy come from its last epoch; the other numbers come from measurements of
-- the timing pass or, launch_gap_ratio, of the activity pass.
CREATE VIEW v_run_summaries AS
SELECT run_id, epochs, epoch_ms_median, epoch_ms_min, images_per_epoch * 1000 / epoch_ms_median AS images_per_s,
  peak_memory_bytes, peak_memory_reason, test_accuracy_ratio,
  iif(test_accuracy_ratio IS NULL, epoch_unavailable ->> '$.test_accuracy_ratio', NULL) AS test_accuracy_reason, train_loss,
  test_loss, launches_per_step, launches_per_step_reason, launch_gap_ratio, launch_gap_reason, time_cold_us_median,
  time_cold_reason, time_warm_us_median, time_warm_reason, suspect, suspect_reason, cold_suspect_reason, warm_suspect_reason
FROM (
  SELECT run.id AS run_id,
    (SELECT count(*) FROM epochs epoch WHERE epoch.pass_id = timing.id AND epoch.warmup = 0) AS epochs,
    (SELECT avg(epoch_ms) FROM (
       SELECT epoch.epoch_ms, row_number() OVER (ORDER BY epoch.epoch_ms) AS rank, count(*) OVER () AS epoch_count
       FROM epochs epoch WHERE epoch.pass_id = timing.id AND epoch.warmup = 0 AND epoch.epoch_ms IS NOT NULL)
     WHERE rank IN ((epoch_count + 1) / 2, (epoch_count + 2) / 2)) AS epoch_ms_median,
    (SELECT min(epoch.epoch_ms) FROM epochs epoch WHERE epoch.pass_id = timing.id AND epoch.warmup = 0) AS epoch_ms_min,
    (SELECT avg(epoch.images) FROM epochs epoch WHERE epoch.pass_id = timing.id AND epoch.warmup = 0) AS images_per_epoch,
    EXISTS (SELECT 1 FROM epochs epoch WHERE epoch.pass_id = timing.id AND epoch.warmup = 0 AND epoch.suspect = 1)
      OR EXISTS (SELECT 1 FROM samples sample WHERE sample.pass_id = timing.id AND sample.suspect = 1) AS suspect,
    coalesce((SELECT min(epoch.suspect_reason) FROM epochs epoch WHERE epoch.pass_id = timing.id AND epoch.warmup = 0
      AND epoch.suspect = 1),
             (SELECT min(sample.suspect_reason) FROM samples sample WHERE sample.pass_id = timing.id AND sample.suspect = 1))
               AS suspect_reason,
    (SELECT min(sample.suspect_reason) FROM samples sample
     WHERE sample.pass_id = timing.id AND sample.suspect = 1 AND sample.mode = 'cold') AS cold_suspect_reason,
    (SELECT min(sample.suspect_reason) FROM samples sample
     WHERE sample.pass_id = timing.id AND sample.suspect = 1 AND sample.mode = 'warm') AS warm_suspect_reason,
    last.test_accuracy_ratio, last.train_loss, last.test_loss, last.unavailable AS epoch_unavailable,
    peak.value AS peak_memory_bytes, peak.reason AS peak_memory_reason,
    launches.value AS launches_per_step, launches.reason AS launches_per_step_reason,
    gap.value AS launch_gap_ratio, gap.reason AS launch_gap_reason,
    cold.value AS time_cold_us_median, cold.reason AS time_cold_reason,
    warm.value AS time_warm_us_median, warm.reason AS time_warm_reason
  FROM runs run
    LEFT JOIN passes timing ON timing.run_id = run.id AND timing.ordinal = 0
    LEFT JOIN passes activity ON activity.run_id = run.id AND activity.ordinal = 1
    LEFT JOIN epochs last ON last.pass_id = timing.id AND last.epoch = (SELECT max(epoch) FROM epochs WHERE pass_id = timing.id)
    LEFT JOIN measurements peak ON peak.pass_id = timing.id AND peak.name = 'peak_memory_bytes'
    LEFT JOIN measurements launches ON launches.pass_id = timing.id AND launches.name = 'launches_per_step'
    LEFT JOIN measurements gap ON gap.pass_id = activity.id AND gap.name = 'launch_gap_ratio'
    LEFT JOIN measurements cold ON cold.pass_id = timing.id AND cold.name = 'time_cold_us_median'
    LEFT JOIN measurements warm ON warm.pass_id = timing.id AND warm.name = 'time_warm_us_median');

-- One row for each run and each of the three passes. Column reason: why the pass has no numbers; NULL: it is completed. If a job
-- failed or was cancelled before any pass of the run ended, this is also the reason for the passes that it did not ask for.
CREATE VIEW v_pass_reasons AS
SELECT run.id AS run, pass_names.ordinal, CASE
  WHEN pass.state = 'completed' THEN NULL
  WHEN pass.state = 'unavailable' THEN pass.reason
  WHEN job.state IN ('failed', 'cancelled')
    AND (pass.id IS NOT NULL
      OR NOT EXISTS (SELECT 1 FROM passes ended WHERE ended.run_id = run.id AND ended.state IN ('completed', 'unavailable')))
  THEN iif(job.state = 'failed', 'the job failed before ', 'the job was cancelled before ')
    || iif(pass.id IS NULL, 'a pass', 'the ' || pass_names.name || ' pass') || ' of this run was completed'
    || iif(job.state = 'failed', '; GET /jobs/' || job.id || ' says why', '')
  WHEN pass.id IS NULL THEN 'the job did not ask for the ' || pass_names.name || ' pass'
  ELSE 'the ' || pass_names.name || ' pass is ' || pass.state || coalesce(': ' || pass.reason, '') END AS reason
FROM runs run CROSS JOIN jobs job ON job.id = run.job_id
  CROSS JOIN (SELECT 0 AS ordinal, 'timing' AS name UNION ALL SELECT 1, 'activity' UNION ALL SELECT 2, 'counters') pass_names
  LEFT JOIN passes pass ON pass.run_id = run.id AND pass.ordinal = pass_names.ordinal;

-- One row for each run with its stored summary. If a number is NULL, its *_reason column contains the reason; train_loss and
-- test_loss have no such column. A run without a committed pass has no stored summary.
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
    warm_suspect_reason, suspect_cause,
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
    SELECT run.job_id AS job, run.id AS run, run.ordinal, job.kind AS job_kind, job.state AS job_state, run.workload, run.variant,
      run."precision", run.batch_size, run.seed, run.engine, run.dataset, run."partial", run.deterministic, job.device,
        device_row.name AS device_name,
      timing.git_commit, timing.finished_at AS at, timing.suspect_cause, summary.*,
      coalesce((SELECT reason FROM v_pass_reasons WHERE v_pass_reasons.run = run.id AND v_pass_reasons.ordinal = 0),
               'the timing pass did not measure it') AS timing_reason,
      coalesce((SELECT reason FROM v_pass_reasons WHERE v_pass_reasons.run = run.id AND v_pass_reasons.ordinal = 1),
               'the activity pass did not measure it') AS activity_reason
    FROM runs run CROSS JOIN jobs job ON job.id = run.job_id
      LEFT JOIN passes timing ON timing.run_id = run.id AND timing.ordinal = 0
      LEFT JOIN passes activity ON activity.run_id = run.id AND activity.ordinal = 1
      LEFT JOIN devices device_row ON device_row.id = coalesce(timing.device_id, activity.device_id)
      LEFT JOIN run_summaries summary ON summary.run_id = run.id));

-- One row for each run.
CREATE VIEW v_runs AS
SELECT job, run, job_state, workload, variant, "precision", batch_size, seed, engine, dataset, "partial", deterministic, device,
  device_name, git_commit, at, epochs, epoch_ms_median, epoch_ms_min, images_per_s, peak_memory_bytes, test_accuracy_ratio,
  train_loss, test_loss, launches_per_step, launch_gap_ratio, suspect, suspect_reason, unavailable,
  suspect_cause
FROM v_run_values;

-- One row for each run: the medians of its samples with a cold and with a warm cache, or why there are none. cold_suspect and
-- warm_suspect are the reasons why a time is suspect; NULL: it is not suspect.
CREATE VIEW v_launch_times AS
SELECT run, time_cold_us_median AS cold_us, time_warm_us_median AS warm_us, time_cold_reason AS cold_reason,
  time_warm_reason AS warm_reason, cold_suspect_reason AS cold_suspect, warm_suspect_reason AS warm_suspect
FROM v_run_values;

-- One row for each ordered pair of runs of the same workload, in the same job or in different jobs. Filter by both runs, or by
-- baseline_job or candidate_job: otherwise SQLite pairs all runs of each workload. The ratio of a suspect time is NULL, because
-- such a time is below its floor, or consists of samples that were taken while the device was throttled. Throttled epochs are not
-- suspect.
CREATE VIEW v_pairs AS
SELECT workload, baseline_job, baseline_run, baseline_device, baseline_variant,
  candidate_job, candidate_run, candidate_device, candidate_variant,
  baseline_epoch_ms_median, candidate_epoch_ms_median, baseline_epoch_ms_min, candidate_epoch_ms_min,
  baseline_images_per_s, candidate_images_per_s,
  iif(epoch_suspect_reason IS NULL, baseline_epoch_ms_median / candidate_epoch_ms_median, NULL) AS speedup_ratio,
  iif(epoch_suspect_reason IS NULL, baseline_epoch_ms_min / candidate_epoch_ms_min, NULL) AS speedup_min_ratio,
  baseline_time_cold_us_median, candidate_time_cold_us_median, baseline_time_warm_us_median, candidate_time_warm_us_median,
  iif(cold_suspect_reason IS NULL, baseline_time_cold_us_median / candidate_time_cold_us_median, NULL) AS speedup_cold_ratio,
  iif(warm_suspect_reason IS NULL, baseline_time_warm_us_median / candidate_time_warm_us_median, NULL) AS speedup_warm_ratio,
  baseline_peak_memory_bytes, candidate_peak_memory_bytes,
  candidate_peak_memory_bytes / baseline_peak_memory_bytes AS peak_memory_ratio,
  baseline_test_accuracy_ratio, candidate_test_accuracy_ratio,
  candidate_test_accuracy_ratio - baseline_test_accuracy_ratio AS test_accuracy_difference_ratio,
  baseline_launches_per_step, candidate_launches_per_step, baseline_launch_gap_ratio, candidate_launch_gap_ratio,
  baseline_engine, candidate_engine, baseline_dataset, candidate_dataset, baseline_partial, candidate_partial,
  baseline_suspect, candidate_suspect, baseline_suspect_reason, candidate_suspect_reason, baseline_suspect_cause,
  candidate_suspect_cause, baseline_unavailable, candidate_unavailable,
  json_patch('{}', json_object( -- json_patch drops members that are null
    'speedup_ratio', coalesce(epoch_suspect_reason, baseline_name || baseline_epoch_ms_median_reason,
                              candidate_name || candidate_epoch_ms_median_reason),
    'speedup_min_ratio', coalesce(epoch_suspect_reason, baseline_name || baseline_epoch_ms_min_reason,
                                  candidate_name || candidate_epoch_ms_min_reason),
    'speedup_cold_ratio', coalesce(cold_suspect_reason, baseline_name || baseline_cold_reason,
                                   candidate_name || candidate_cold_reason),
    'speedup_warm_ratio', coalesce(warm_suspect_reason, baseline_name || baseline_warm_reason,
                                   candidate_name || candidate_warm_reason),
    'peak_memory_ratio', coalesce(baseline_name || baseline_peak_memory_reason, candidate_name || candidate_peak_memory_reason),
    'test_accuracy_difference_ratio', coalesce(baseline_name || baseline_test_accuracy_reason,
                                               candidate_name || candidate_test_accuracy_reason))) AS unavailable
FROM (
  SELECT baseline.workload, baseline.job AS baseline_job, candidate.job AS candidate_job, baseline.run AS baseline_run,
    candidate.run AS candidate_run,
    baseline.device AS baseline_device, candidate.device AS candidate_device, baseline.variant AS baseline_variant,
      candidate.variant AS candidate_variant,
    baseline.variant || iif(baseline.variant = candidate.variant, ' of run ' || baseline.run, '') || ': ' AS baseline_name,
    candidate.variant || iif(baseline.variant = candidate.variant, ' of run ' || candidate.run, '') || ': ' AS candidate_name,
    baseline.epoch_ms_median AS baseline_epoch_ms_median, candidate.epoch_ms_median AS candidate_epoch_ms_median,
    baseline.epoch_ms_min AS baseline_epoch_ms_min, candidate.epoch_ms_min AS candidate_epoch_ms_min,
    baseline.images_per_s AS baseline_images_per_s, candidate.images_per_s AS candidate_images_per_s,
    baseline.time_cold_us_median AS baseline_time_cold_us_median, candidate.time_cold_us_median AS candidate_time_cold_us_median,
    baseline.time_warm_us_median AS baseline_time_warm_us_median, candidate.time_warm_us_median AS candidate_time_warm_us_median,
    baseline.peak_memory_bytes AS baseline_peak_memory_bytes, candidate.peak_memory_bytes AS candidate_peak_memory_bytes,
    baseline.test_accuracy_ratio AS baseline_test_accuracy_ratio, candidate.test_accuracy_ratio AS candidate_test_accuracy_ratio,
    baseline.launches_per_step AS baseline_launches_per_step, candidate.launches_per_step AS candidate_launches_per_step,
    baseline.launch_gap_ratio AS baseline_launch_gap_ratio, candidate.launch_gap_ratio AS candidate_launch_gap_ratio,
    baseline.engine AS baseline_engine, candidate.engine AS candidate_engine, baseline.dataset AS baseline_dataset,
      candidate.dataset AS candidate_dataset,
    baseline."partial" AS baseline_partial, candidate."partial" AS candidate_partial,
    baseline.suspect AS baseline_suspect, candidate.suspect AS candidate_suspect,
    baseline.unavailable AS baseline_unavailable, candidate.unavailable AS candidate_unavailable,
    baseline.epoch_ms_median_reason AS baseline_epoch_ms_median_reason, candidate.epoch_ms_median_reason
      AS candidate_epoch_ms_median_reason,
    baseline.epoch_ms_min_reason AS baseline_epoch_ms_min_reason, candidate.epoch_ms_min_reason AS candidate_epoch_ms_min_reason,
    baseline.peak_memory_reason AS baseline_peak_memory_reason, candidate.peak_memory_reason AS candidate_peak_memory_reason,
    baseline.test_accuracy_reason AS baseline_test_accuracy_reason, candidate.test_accuracy_reason
      AS candidate_test_accuracy_reason,
    baseline.time_cold_reason AS baseline_cold_reason, candidate.time_cold_reason AS candidate_cold_reason,
    baseline.time_warm_reason AS baseline_warm_reason, candidate.time_warm_reason AS candidate_warm_reason,
    baseline.suspect_reason AS baseline_suspect_reason, candidate.suspect_reason AS candidate_suspect_reason,
    baseline.suspect_cause AS baseline_suspect_cause, candidate.suspect_cause AS candidate_suspect_cause,
    coalesce(baseline.variant || ' is suspect: ' || baseline.suspect_reason,
             candidate.variant || ' is suspect: ' || candidate.suspect_reason) AS epoch_suspect_reason,
    coalesce(baseline.variant || ' is suspect: ' || baseline.cold_suspect_reason,
             candidate.variant || ' is suspect: ' || candidate.cold_suspect_reason) AS cold_suspect_reason,
    coalesce(baseline.variant || ' is suspect: ' || baseline.warm_suspect_reason,
             candidate.variant || ' is suspect: ' || candidate.warm_suspect_reason) AS warm_suspect_reason
  FROM v_run_values baseline JOIN v_run_values candidate ON candidate.workload = baseline.workload);

-- One row for each run that has a baseline. The baseline is the job's first fp32 run of the same workload, if that is another
-- run.
CREATE VIEW v_baselines AS
SELECT job, baseline_run, candidate_run
FROM (
  SELECT run.job_id AS job, run.id AS candidate_run, (
    SELECT other_run.id FROM runs other_run
    WHERE other_run.job_id = run.job_id AND other_run.workload = run.workload AND other_run.variant = 'fp32'
      ORDER BY other_run.ordinal LIMIT 1) AS baseline_run
  FROM runs run)
WHERE baseline_run <> candidate_run;

-- The pairs of v_pairs that consist of a run and its baseline in v_baselines.
CREATE VIEW v_comparisons AS
SELECT v_baselines.job, v_pairs.baseline_device AS device, v_pairs.*
FROM v_baselines CROSS JOIN v_pairs ON v_pairs.baseline_run = v_baselines.baseline_run
  AND v_pairs.candidate_run = v_baselines.candidate_run;

-- One row for each job: its item in the list of jobs. For a job that waits or has ended, jobs.listing is the stored item.
CREATE VIEW v_listings AS
SELECT job.id AS job, json_object(
  'id', job.id, 'kind', job.kind, 'origin', job.origin, 'state', job.state, 'device', job.device,
  'created_at', job.created_at, 'started_at', job.started_at, 'finished_at', job.finished_at,
  'passes', json((SELECT json_object('total', count(*), 'pending', count(*) FILTER (WHERE state = 'pending'),
                                     'running', count(*) FILTER (WHERE state = 'running'),
                                     'completed', count(*) FILTER (WHERE state = 'completed'),
                                     'unavailable', count(*) FILTER (WHERE state = 'unavailable'))
                  FROM passes WHERE job_id = job.id)),
  'problem', json(iif(job.problem_message IS NULL, 'null', json_object(
    'domain', job.problem_domain, 'code', job.problem_code, 'message', job.problem_message))),
  'name', coalesce(nullif(job.request ->> '$.name', ''), job.request ->> '$.file_name'),
  'tags', json(coalesce(job.request -> '$.tags', '[]')),
  'suite_run', json((SELECT json_object('id', suite_run.id, 'suite', suite_run.suite, 'role', role, 'block', block)
                     FROM suite_jobs JOIN suite_runs suite_run ON suite_run.id = suite_run_id WHERE job_id = job.id LIMIT 1)),
  'workload', first.workload, 'engine', first.engine, 'entry', job.request ->> '$.entry', 'grid', json(job.request -> '$.grid'),
  'block', json(job.request -> '$.block'),
  'parameters', json(iif(job.kind IN ('train', 'layer'), first.nondefault_params, NULL)),
  'dtype', first.params ->> '$.dtype', 'shape', json(first.params -> '$.shape'),
  'batch_size', first.params ->> '$.batch_size',
  'runs', json((SELECT json_group_array(json_object('id', id, 'variant', variant))
                FROM (SELECT id, variant FROM runs WHERE job_id = job.id ORDER BY ordinal))),
  'fastest', json(coalesce((
    SELECT json_object('run', run, 'variant', variant, 'epoch_ms_median', iif(job_kind = 'train', epoch_ms_median, NULL),
                       'time_cold_us_median', iif(job_kind = 'train', NULL, time_cold_us_median))
    FROM v_run_values
    WHERE v_run_values.job = job.id AND iif(job_kind = 'train', epoch_ms_median IS NOT NULL AND NOT suspect,
                               time_cold_us_median IS NOT NULL AND cold_suspect_reason IS NULL)
    ORDER BY iif(job_kind = 'train', epoch_ms_median, time_cold_us_median) LIMIT 1), 'null'))) AS listing
FROM jobs job LEFT JOIN runs first ON first.job_id = job.id AND first.ordinal = 0;

-- Computes the rows of the table history, one for each completed pass. Column metrics: the sorted names of the metrics that the
-- pass has measured. Column point: JSON of the point of the pass in a history.
CREATE VIEW v_history AS
SELECT pass.id AS pass_id, pass.run_id, pass.finished_ns, run.workload, run.variant, run.nondefault_params, job.device,
  (SELECT json_group_array(name) FROM (
     SELECT name FROM measurements WHERE pass_id = pass.id AND value IS NOT NULL
     UNION SELECT 'epoch_ms_median' WHERE pass.ordinal = 0 AND summary.epoch_ms_median IS NOT NULL
     UNION SELECT 'epoch_ms_min' WHERE pass.ordinal = 0 AND summary.epoch_ms_min IS NOT NULL
     UNION SELECT 'images_per_s' WHERE pass.ordinal = 0 AND summary.images_per_s IS NOT NULL
     UNION SELECT 'test_accuracy_ratio' WHERE pass.ordinal = 0 AND summary.test_accuracy_ratio IS NOT NULL)) AS metrics,
  json_object(
    'job', pass.job_id, 'run', pass.run_id, 'at', pass.finished_at, 'workload', run.workload, 'variant', run.variant,
      'engine', run.engine,
    'device', job.device, 'device_name', (
      SELECT device_row.name FROM passes other_pass JOIN devices device_row ON device_row.id = other_pass.device_id
      WHERE other_pass.run_id = run.id AND other_pass.ordinal IN (0, 1) ORDER BY other_pass.ordinal LIMIT 1),
    'commit', pass.git_commit, 'partial', json(CASE run."partial" WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'null' END),
    'suspect', json(iif(summary.suspect, 'true', 'false'))) AS point
FROM runs run CROSS JOIN passes pass ON pass.run_id = run.id AND pass.state = 'completed' CROSS JOIN jobs job
  ON job.id = run.job_id
  LEFT JOIN run_summaries summary ON summary.run_id = run.id;

-- One row for each epoch.
CREATE VIEW v_epochs AS
SELECT pass.job_id AS job, pass.run_id AS run, run.workload, run.variant, run.engine, job.device, pass.finished_at AS at,
  epoch.epoch, epoch.warmup,
  epoch.epoch_ms, epoch.images * 1000 / epoch.epoch_ms AS images_per_s, epoch.device_ms, epoch.host_ms, epoch.evaluation_ms,
    epoch.images, epoch.train_loss,
  epoch.test_loss, epoch.test_accuracy_ratio, epoch.loss_scale, epoch.skipped_steps, epoch.sm_clock_before_mhz,
    epoch.sm_clock_after_mhz,
  epoch.memory_clock_mhz, epoch.temperature_c, epoch.power_w, epoch.throttle_reasons, epoch.unavailable, epoch.suspect,
    epoch.suspect_reason, run.partial
FROM epochs epoch JOIN passes pass ON pass.id = epoch.pass_id JOIN runs run ON run.id = pass.run_id JOIN jobs job
  ON job.id = pass.job_id;

-- One row for each timed sample of launches.
CREATE VIEW v_samples AS
SELECT pass.job_id AS job, pass.run_id AS run, run.workload, run.variant, run.params ->> '$.dtype' AS dtype,
  run.params -> '$.shape' AS shape,
  run.engine, job.device, pass.finished_at AS at, pass.name AS pass, sample.mode, sample.ordinal, sample.device_us,
    sample.suspect, sample.suspect_reason
FROM samples sample JOIN passes pass ON pass.id = sample.pass_id JOIN runs run ON run.id = pass.run_id JOIN jobs job
  ON job.id = pass.job_id;

-- One row for each timing pass: how other processes used its device meanwhile. Column shared: 1 if other processes had the GPU
-- open, or used more than 5 % of the time of the CPU's processors or more than that of half a processor; 0 if not; NULL if unknown.
-- An idle system uses less than 5 %, and the best samples of ceilings hardly become longer by it. A few busy processes on a CPU
-- with many processors also use less, but can take much of the memory bandwidth. Column device_use: the same as a clause, with the
-- three processes that use most memory; NULL: unknown. Column processes: the processes on the GPU, before and after the pass;
-- NULL: none, or unknown.
CREATE VIEW v_other_processes AS
SELECT job, run, pass_id, device, measures_ceilings, processes, shared,
  CASE WHEN processes IS NOT NULL
       THEN printf('other processes had the GPU open when the measurement began or ended (%s%s)', largest_processes,
                   iif(listed_count > 3, printf(' and %d more', listed_count - 3), ''))
       WHEN process_count = 0 THEN 'no other process had the GPU open when the measurement began and ended'
       WHEN shared IS NOT NULL
       THEN printf('other processes, interrupts or the hypervisor used %s%.1f %% of the processors'' time%s during the measurement',
                   iif(shared, '', 'only '), cpu_time_ratio * 100,
                   coalesce(' (' || round(busy_processors, 2) || ' processors)', '')) END AS device_use
FROM (
  SELECT *, CASE WHEN processes IS NOT NULL THEN 1 WHEN process_count = 0 THEN 0
    ELSE cpu_time_ratio > 0.05 OR busy_processors > 0.5 END AS shared
  FROM (
    SELECT *, json_array_length(listed) AS listed_count,
      (SELECT group_concat(value ->> 'text', ', ') FROM json_each(listed)) AS processes,
      (SELECT group_concat(text, ', ') FROM (
        SELECT value ->> 'text' AS text FROM json_each(listed) ORDER BY value ->> 'bytes' DESC LIMIT 3)) AS largest_processes
    FROM (
      SELECT pass.job_id AS job, pass.run_id AS run, pass.id AS pass_id, job.device, pass.measures_ceilings,
        (SELECT json_group_array(json_object('bytes', value, 'text', printf(
           'pid %s%s', replace(replace(name, 'other_process_', ''), '_memory_bytes', ''),
           iif(value IS NULL, '', printf(' (%.0f MiB)', value / 1048576)))))
         FROM measurements WHERE pass_id = pass.id AND name GLOB 'other_process_*_memory_bytes') AS listed,
        (SELECT iif(count(value) = 2, max(value), NULL) FROM measurements
         WHERE pass_id = pass.id AND name IN ('other_processes_before', 'other_processes_after')) AS process_count,
        (SELECT value FROM measurements WHERE pass_id = pass.id AND name = 'other_processes_cpu_time_ratio') AS cpu_time_ratio,
        (SELECT value FROM measurements WHERE pass_id = pass.id AND name = 'other_processes_busy_processors') AS busy_processors
      FROM passes pass JOIN jobs job ON job.id = pass.job_id
      WHERE pass.ordinal = 0)));

-- One row for each ceilings pass during which other processes used the device. Column reason: why its rates may be too low, and
-- what to do.
CREATE VIEW v_disturbed_ceilings AS
SELECT run, pass_id, printf('%s, so the rates may be too low: measure them again while nothing else runs (rooflinectl run --kind '
  || 'ceilings --device %s)', device_use, device) AS reason
FROM v_other_processes WHERE measures_ceilings = 1 AND shared = 1;

-- The newest ceilings pass of each device and driver. stale_reason is not NULL if the device now reports another driver or other
-- clocks.
CREATE VIEW v_ceiling_passes AS
SELECT pass.job_id AS job, pass.run_id AS run, pass.id AS pass_id, job.device, devices.name AS device_name,
  devices.identity AS device_identity, devices.driver, pass.finished_at AS at,
  unixepoch() - pass.finished_ns / 1000000000 AS age_s, pass.git_commit, devices.sm_clock_max_mhz, devices.memory_clock_max_mhz,
  CASE WHEN newest_device.driver IS NOT devices.driver
       THEN printf('measured with driver %s, and the device has %s now', devices.driver, newest_device.driver)
       WHEN newest_device.sm_clock_max_mhz IS NOT devices.sm_clock_max_mhz
         OR newest_device.memory_clock_max_mhz IS NOT devices.memory_clock_max_mhz
       THEN printf('measured with an SM clock of at most %g MHz and a memory clock of at most %g MHz; now they are %g and %g MHz',
                   devices.sm_clock_max_mhz, devices.memory_clock_max_mhz, newest_device.sm_clock_max_mhz,
                   newest_device.memory_clock_max_mhz)
       WHEN newest_device.clock_setting IS NOT devices.clock_setting
       THEN printf('measured with the clocks set to %s, and the device has %s now',
                   coalesce(devices.clock_setting, 'unknown settings'), coalesce(newest_device.clock_setting, 'unknown settings'))
       END AS stale_reason,
  devices.clock_setting,
  (SELECT reason FROM v_disturbed_ceilings WHERE v_disturbed_ceilings.pass_id = pass.id) AS disturbed_reason
FROM devices
  CROSS JOIN passes pass ON pass.device_id = devices.id AND pass.measures_ceilings = 1 AND pass.state = 'completed'
    AND pass.run_id = (
    SELECT max((
      SELECT max(run_id) FROM passes WHERE device_id = equal_device.id AND measures_ceilings = 1 AND state = 'completed'))
    FROM devices equal_device WHERE equal_device.identity = devices.identity AND equal_device.driver IS devices.driver)
  CROSS JOIN jobs job ON job.id = pass.job_id
  CROSS JOIN devices newest_device ON newest_device.id = (
    SELECT reported_device.id FROM devices reported_device WHERE reported_device.identity = devices.identity
    ORDER BY reported_device.last_ns DESC LIMIT 1);

-- One row for each rate of the passes in v_ceiling_passes.
CREATE VIEW v_ceilings AS
SELECT v_ceiling_passes.job, v_ceiling_passes.run, v_ceiling_passes.device, v_ceiling_passes.device_name,
  v_ceiling_passes.device_identity, v_ceiling_passes.driver, v_ceiling_passes.at, v_ceiling_passes.age_s,
    v_ceiling_passes.git_commit, measurement.name, measurement.value, measurement.reason,
  v_ceiling_passes.sm_clock_max_mhz, v_ceiling_passes.memory_clock_max_mhz,
  (SELECT value FROM measurements WHERE pass_id = v_ceiling_passes.pass_id AND name = 'sm_clock_least_mhz') AS sm_clock_least_mhz,
  (SELECT value FROM measurements WHERE pass_id = v_ceiling_passes.pass_id AND name = 'temperature_c_most') AS temperature_c_most,
  (SELECT value FROM measurements WHERE pass_id = v_ceiling_passes.pass_id AND name = 'throttled_ratio') AS throttled_ratio,
    v_ceiling_passes.stale_reason, v_ceiling_passes.disturbed_reason
FROM v_ceiling_passes JOIN measurements measurement ON measurement.pass_id = v_ceiling_passes.pass_id
  AND measurement.name GLOB '*_per_s';

-- The floor of an iteration (an epoch, or the launches of a kernel job): its minimum time according to the pass's ceilings. The
-- floor is the maximum of three times; a time that is unknown (NULL) is omitted. The times are those of the operations, of the
-- bytes from memory, and of the bytes from the last cache level. The bytes from memory are the bytes that do not fit into the
-- caches. A warm cache may already contain any of the bytes. A cold cache contains none at first, but bytes that the launches
-- write may stay in it instead of reaching memory. The bytes from the last cache level are, in the same way, the bytes that do
-- not fit into the other cache levels. The floor is amount / amount_per_s; column work names the unit of amount. Column arithmetic:
-- this computation as a text.
CREATE VIEW v_floors AS
SELECT job, run, pass_id, cache, ceilings_id, operations, operations_per_s, floor_ms,
  iif(floor_ms IS NULL, NULL, printf('%.6g %s at %.6g/s', amount, work, amount_per_s)) AS arithmetic,
  CASE WHEN ceilings_id IS NULL THEN 'no ceilings of this device with its driver and clocks yet: run a job of the kind ceilings'
       WHEN floor_ms IS NULL THEN 'the ceilings have no rate for the minimum work of the workload' END AS reason,
  work, amount, amount_per_s
FROM (
  SELECT *,
    CASE floor_ms WHEN operations_ms THEN 'operations in ' || "precision" WHEN memory_ms THEN 'bytes from memory'
      WHEN last_cache_ms THEN 'bytes from the last cache' END AS work,
    CASE floor_ms WHEN operations_ms THEN operations WHEN memory_ms THEN memory_bytes
      WHEN last_cache_ms THEN last_cache_bytes END AS amount,
    CASE floor_ms WHEN operations_ms THEN operations_per_s WHEN memory_ms THEN memory_bytes_per_s
      WHEN last_cache_ms THEN last_cache_bytes_per_s END AS amount_per_s
  FROM (
  SELECT *, nullif(max(coalesce(operations_ms, 0), coalesce(memory_ms, 0), coalesce(last_cache_ms, 0)), 0) AS floor_ms
  FROM (
    SELECT *, operations / operations_per_s * 1000 AS operations_ms, memory_bytes / memory_bytes_per_s * 1000 AS memory_ms,
      last_cache_bytes / last_cache_bytes_per_s * 1000 AS last_cache_ms
    FROM (
      SELECT pass.job_id AS job, pass.run_id AS run, pass.id AS pass_id, cache_mode.value AS cache, pass.ceilings_id,
        run.floor_operations AS operations,
        run.floor_precision AS "precision",
        (SELECT max(measurement.value)
         FROM precision_rates CROSS JOIN measurements measurement ON measurement.pass_id = pass.ceilings_id
           AND measurement.name = precision_rates.name
         WHERE precision_rates."precision" = run.floor_precision) AS operations_per_s,
        run.floor_bytes - min(run.floor_bytes,
          coalesce(iif(cache_mode.value = 'cold', min(run.floor_written_bytes, device_row.cache_bytes), device_row.cache_bytes),
            run.floor_bytes))
          AS memory_bytes,
        (SELECT max(value) FROM measurements
         WHERE pass_id = pass.ceilings_id AND name GLOB 'dram_*_bytes_per_s') AS memory_bytes_per_s,
        run.floor_bytes - min(run.floor_bytes,
          coalesce(iif(cache_mode.value = 'cold', min(run.floor_written_bytes, device_row.private_cache_bytes),
            device_row.private_cache_bytes),
                   run.floor_bytes))
          AS last_cache_bytes,
        (SELECT max(value) FROM measurements
         WHERE pass_id = pass.ceilings_id AND name GLOB 'l[23]_*_bytes_per_s') AS last_cache_bytes_per_s
      FROM passes pass JOIN runs run ON run.id = pass.run_id JOIN devices device_row ON device_row.id = pass.device_id
        CROSS JOIN json_each('["cold", "warm"]') cache_mode
      WHERE pass.ordinal = 0))));

-- One row for each measurement of a pass.
CREATE VIEW v_measurements AS
SELECT pass.job_id AS job, pass.run_id AS run, run.workload, run.variant, run.engine, job.device, pass.finished_at AS at,
  pass.name AS pass, measurement.name,
  measurement.value, measurement.reason
FROM measurements measurement JOIN passes pass ON pass.id = measurement.pass_id JOIN runs run ON run.id = pass.run_id
  JOIN jobs job ON job.id = pass.job_id;

-- One row for each kernel of a pass.
CREATE VIEW v_kernels AS
SELECT pass.job_id AS job, pass.run_id AS run, run.workload, run.variant, run.engine, job.device, pass.name AS pass,
  kernel.ordinal, kernel.launch, kernel.phase,
  kernel.name, kernel.launches, kernel.total_us, kernel.min_us, kernel.median_us, kernel.max_us, kernel.share_ratio,
    kernel.registers_per_thread, kernel.static_shared_bytes,
  kernel.dynamic_shared_bytes, kernel.grid_x, kernel.grid_y, kernel.grid_z, kernel.block_x, kernel.block_y, kernel.block_z,
    kernel.theoretical_occupancy_ratio, kernel.reason,
  (SELECT json_group_object(metric, value) FROM kernel_metrics WHERE kernel_id = kernel.id) AS metrics, kernel.code_sha256
FROM kernels kernel JOIN passes pass ON pass.id = kernel.pass_id JOIN runs run ON run.id = pass.run_id JOIN jobs job
  ON job.id = pass.job_id;

-- One row for each phase inside a kernel that records the times of its phases. Column name: name of the phase; phase: its kind,
-- as in v_kernels.
CREATE VIEW v_phases AS
SELECT pass.job_id AS job, pass.run_id AS run, run.workload, run.variant, run.engine, kernel.ordinal AS kernel, kernel.launch,
  kernel_phase.position, kernel_phase.name,
  kernel_phase.phase, kernel_phase.steps, kernel_phase.blocks, kernel_phase.mean_us, kernel_phase.min_us, kernel_phase.max_us,
    kernel_phase.share_ratio
FROM phases kernel_phase JOIN kernels kernel ON kernel.id = kernel_phase.kernel_id JOIN passes pass ON pass.id = kernel.pass_id
  JOIN runs run ON run.id = pass.run_id;

-- Pairs each kernel of an activity pass with the kernels of the run's counters pass that have its launch and name. Column
-- is_equal: 1 if grid, block and shared memory are equal. A kernel with phases is a version of the launch's only kernel that also
-- records timestamps; the counters pass profiles the version without, which has another name.
CREATE VIEW v_counted_kernels AS
SELECT kernel.id AS kernel, other.id AS counted,
  other.name <> kernel.name OR (
    other.grid_x IS kernel.grid_x AND other.grid_y IS kernel.grid_y AND other.grid_z IS kernel.grid_z
    AND other.block_x IS kernel.block_x AND other.block_y IS kernel.block_y AND other.block_z IS kernel.block_z
    AND other.static_shared_bytes IS kernel.static_shared_bytes AND other.dynamic_shared_bytes IS kernel.dynamic_shared_bytes)
    AS is_equal
FROM kernels kernel CROSS JOIN passes activity_pass ON activity_pass.id = kernel.pass_id AND activity_pass.ordinal = 1
  CROSS JOIN passes counters_pass ON counters_pass.run_id = activity_pass.run_id AND counters_pass.ordinal = 2
  CROSS JOIN kernels other ON other.pass_id = counters_pass.id AND other.launch IS kernel.launch
    AND (other.name = kernel.name OR EXISTS (SELECT 1 FROM phases WHERE phases.kernel_id = kernel.id));

-- The kernels that activity passes have traced. A kernel with phases has one row for each phase, and the shares of the phases add
-- up to the kernel's time. Column counted: id of the same kernel in the run's counters pass. NULL: column reason says why. If
-- counted_kernels > 1, a step executes the kernel several times with equal grid, block and shared memory, and counted is the first
-- of these executions.
CREATE VIEW v_traced_kernels AS
SELECT run, kernel, ordinal, phase, position, us, iif(reason IS NULL, equal_kernel, NULL) AS counted,
  iif(reason IS NULL, equal_kernels, 0) AS counted_kernels, reason
FROM (
  SELECT *, CASE
      WHEN other_kernels > 0
      THEN 'the counters pass measured the kernel also with a grid, block or shared memory that the trace does not list, '
        || 'so the time may include such executions'
      WHEN equal_kernel IS NULL AND has_counted
      THEN 'the counters pass measured the kernel only with another grid, block or shared memory'
      WHEN equal_kernel IS NULL THEN 'the counters pass did not measure the kernel' END AS reason
  FROM (
    SELECT activity_pass.run_id AS run, kernel.id AS kernel, kernel.ordinal, kernel_phase.name AS phase, kernel_phase.position,
      kernel.total_us * coalesce(kernel_phase.share_ratio, 1) AS us,
      (SELECT min(counted) FROM v_counted_kernels pair WHERE pair.kernel = kernel.id AND pair.is_equal) AS equal_kernel,
      (SELECT count(*) FROM v_counted_kernels pair WHERE pair.kernel = kernel.id AND pair.is_equal) AS equal_kernels,
      EXISTS (SELECT 1 FROM v_counted_kernels pair WHERE pair.kernel = kernel.id) AS has_counted,
      (SELECT count(*) FROM v_counted_kernels pair
       WHERE pair.kernel = kernel.id AND NOT pair.is_equal AND NOT EXISTS (
         SELECT 1 FROM kernels traced JOIN v_counted_kernels equal_pair ON equal_pair.kernel = traced.id
         WHERE traced.pass_id = kernel.pass_id AND equal_pair.counted = pair.counted AND equal_pair.is_equal)) AS other_kernels
    FROM passes activity_pass JOIN kernels kernel ON kernel.pass_id = activity_pass.id
      LEFT JOIN phases kernel_phase ON kernel_phase.kernel_id = kernel.id AND kernel_phase.share_ratio IS NOT NULL
    WHERE activity_pass.ordinal = 1));

-- One row for each instruction of a kernel's machine code.
CREATE VIEW v_instructions AS
SELECT pass.job_id AS job, pass.run_id AS run, run.workload, run.variant, kernel.ordinal AS kernel, kernel.name,
  instruction."offset", instruction.opcode,
  instruction.sass, instruction.file, instruction.line, instruction.counts, instruction.reason
FROM instructions instruction JOIN kernels kernel ON kernel.id = instruction.kernel_id JOIN passes pass
  ON pass.id = kernel.pass_id JOIN runs run ON run.id = pass.run_id;

-- One row for each point (x, value) of a series of a kernel.
CREATE VIEW v_series AS
SELECT pass.job_id AS job, pass.run_id AS run, run.workload, run.variant, kernel.ordinal AS kernel, kernel.name, series.name
  AS series, series.x, series.value
FROM series JOIN kernels kernel ON kernel.id = series.kernel_id JOIN passes pass ON pass.id = kernel.pass_id JOIN runs run
  ON run.id = pass.run_id;

-- One row for each activity row of the passes with activity_kept = 1: committed passes whose activity rows have not been deleted
-- by retention. CROSS JOIN keeps the order of the tables, so that SQLite looks up the dictionary entry of each activity row; it
-- would be slow to search the activity rows of each entry.
CREATE VIEW v_activity AS
SELECT pass.job_id AS job, pass.run_id AS run, activity_kinds.name AS kind, names.name, activity_row.start_ns,
  activity_row.start_ns + activity_row.duration_ns AS end_ns, activity_row.duration_ns,
  nullif(entry.stream, 0) AS stream, nullif(activity_row.correlation, 0) AS correlation, nullif(entry.graph_node, 0)
    AS graph_node, entry.grid_x,
  entry.grid_y, entry.grid_z, entry.block_x, entry.block_y, entry.block_z,
  iif(entry.unknown_values & 1, NULL, entry.registers) AS registers,
  iif(entry.unknown_values & 2, NULL, entry.static_shared_bytes) AS static_shared_bytes,
  iif(entry.unknown_values & 4, NULL, entry.dynamic_shared_bytes) AS dynamic_shared_bytes,
  iif(entry.unknown_values & 8, NULL, entry.bytes) AS bytes,
  nullif(activity_row.step, 0) - 1 AS step, nullif(entry.process, 0) AS process, nullif(entry.thread, 0) AS thread,
  nullif(entry.device, 0) - 1 AS device, nullif(entry.context, 0) AS context,
  (SELECT name FROM memory_kinds WHERE kind = entry.source_memory) AS source_memory,
  (SELECT name FROM memory_kinds WHERE kind = entry.destination_memory) AS destination_memory,
  nullif(entry.call_stream, 0) AS call_stream, nullif(entry.event, 0) AS event
FROM passes pass CROSS JOIN activity_groups activity_group ON activity_group.pass_id = pass.id CROSS JOIN activity_kinds
  ON activity_kinds.kind = activity_group.kind
  CROSS JOIN activity activity_row ON activity_row.pass_id = activity_group.pass_id
    AND activity_row.activity_group = activity_group.activity_group
  CROSS JOIN activity_dictionary entry ON entry.pass_id = activity_row.pass_id AND entry.entry = activity_row.entry
  CROSS JOIN names ON names.pass_id = entry.pass_id AND names.ordinal = entry.name
WHERE pass.activity_kept = 1;

-- The suite runs that retention never deletes: runs of named baselines; runs with events that the webhook has yet to deliver; and
-- the newest 100 comparable runs of each suite and device, because later runs are compared with up to 40 of them, and the
-- webhook's events depend on up to 100.
CREATE VIEW v_needed_suite_runs AS
SELECT suite_run_id AS suite_run FROM baselines
UNION ALL SELECT suite_run_id FROM webhook_events WHERE state = 'pending'
UNION ALL SELECT id FROM suite_runs suite_run
WHERE state = 'completed' AND quarantine_reason IS NULL AND against_request IS NULL AND (
  SELECT count(*) FROM (
    SELECT 1 FROM suite_runs newer INDEXED BY suite_runs_comparable
    WHERE newer.suite = suite_run.suite AND newer.device = suite_run.device AND newer.id > suite_run.id
      AND newer.state = 'completed' AND newer.quarantine_reason IS NULL AND newer.against_request IS NULL LIMIT 100)) < 100;

-- The ended jobs that retention never deletes: jobs that profiled the suite run of a named baseline, because later suite runs
-- compare their profiles with that profile; and the newest completed ceilings job of each device, because the floors of later
-- jobs follow from its rates.
CREATE VIEW v_needed_jobs AS
SELECT suite_job.job_id AS job FROM suite_jobs suite_job JOIN baselines ON baselines.suite_run_id = suite_job.suite_run_id
WHERE suite_job.role = 'profile' AND suite_job.job_id IS NOT NULL
UNION ALL SELECT pass.job_id FROM passes pass
WHERE pass.measures_ceilings = 1 AND pass.state = 'completed' AND pass.run_id = (
  SELECT max(run_id) FROM passes newest_pass
  WHERE newest_pass.device_id = pass.device_id AND newest_pass.measures_ceilings = 1 AND newest_pass.state = 'completed');

-- Computes suite_runs.listing.
CREATE VIEW v_suite_listings AS
SELECT suite_run.id AS suite_run, json_object(
  'id', suite_run.id, 'suite', suite_run.suite, 'device', suite_run.device, 'state', suite_run.state,
    'verdict', suite_run.verdict, 'reason', suite_run.reason,
  'quarantine_reason', suite_run.quarantine_reason, 'against', suite_run.against, 'created_at', suite_run.created_at,
    'started_at', suite_run.started_at,
  'finished_at', suite_run.finished_at, 'device_name', suite_run.device_name, 'driver', suite_run.driver,
    'git_commit', suite_run.git_commit,
  'counts', json((
    SELECT json_object('faster', count(*) FILTER (WHERE verdict = 'faster'), 'same', count(*) FILTER (WHERE verdict = 'same'),
                       'slower', count(*) FILTER (WHERE verdict = 'slower'),
                       'inconclusive', count(*) FILTER (WHERE verdict = 'inconclusive'),
                       'incomparable', count(*) FILTER (WHERE verdict = 'incomparable'))
    FROM suite_verdicts suite_verdict WHERE suite_verdict.suite_run_id = suite_run.id))) AS listing
FROM suite_runs suite_run;

-- One row for each run of a regression suite. Column against: name of the baseline; NULL: the rolling baseline.
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
