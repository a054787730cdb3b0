-- Returns the results of the runs of job :job.
SELECT json_object('job', job.id, 'state', iif(job.state = 'running' AND has_unstored_results(job.id), 'storing', job.state),
  'runs', stored_json((
  SELECT json_group_array(stored_json(run)) FROM (
    SELECT json_object(
      'run', run.id, 'workload', run.workload, 'variant', run.variant, 'engine', run.engine,
      'dataset', run.dataset, 'dataset_sha256', run.dataset_sha256,
      'deterministic', stored_json(CASE run.deterministic WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'null' END),
      'deterministic_note', run.deterministic_note,
      'partial', stored_json(CASE run."partial" WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'null' END),
      'params', stored_json(run.params),
      'images_per_epoch', run.images_per_epoch, 'steps_per_epoch', run.steps_per_epoch, 'parameters', run.parameters,
      'floor_operations', run.floor_operations, 'floor_precision', run.floor_precision, 'floor_bytes', run.floor_bytes,
      'floor_written_bytes', run.floor_written_bytes,
      'device', stored_json(coalesce((
        SELECT device_row.properties FROM passes pass JOIN devices device_row ON device_row.id = pass.device_id
        WHERE pass.run_id = run.id ORDER BY pass.ordinal LIMIT 1), 'null')),
      'commit', (SELECT git_commit FROM passes WHERE run_id = run.id AND git_commit IS NOT NULL ORDER BY ordinal LIMIT 1),
      'passes', stored_json((
        SELECT json_group_array(stored_json(pass)) FROM (
          SELECT json_object('pass', pass.name, 'state', pass.state, 'reason', pass.reason,
            'started_at', utc_text(pass.started_ns),
                             'finished_at', utc_text(pass.finished_ns), 'commit', pass.git_commit,
                             'activity_rows', pass.activity_rows,
                             'activity_kept', stored_json(iif(pass.activity_kept, 'true', 'false'))) AS pass
          FROM passes pass WHERE pass.run_id = run.id ORDER BY pass.ordinal))),
      'epochs', stored_json((
        SELECT json_group_array(stored_json(epoch)) FROM (
          SELECT json_object(
            'epoch', epoch.epoch, 'warmup', stored_json(iif(epoch.warmup, 'true', 'false')), 'epoch_ms', epoch.epoch_ms,
            'device_ms', epoch.device_ms, 'host_ms', epoch.host_ms, 'evaluation_ms', epoch.evaluation_ms,
            'images', epoch.images, 'images_per_s', epoch.images * 1000 / epoch.epoch_ms, 'train_loss', epoch.train_loss,
            'test_loss', epoch.test_loss, 'test_accuracy_ratio', epoch.test_accuracy_ratio, 'loss_scale', epoch.loss_scale,
            'skipped_steps', epoch.skipped_steps, 'sm_clock_before_mhz', epoch.sm_clock_before_mhz,
            'sm_clock_after_mhz', epoch.sm_clock_after_mhz, 'memory_clock_mhz', epoch.memory_clock_mhz,
            'temperature_c', epoch.temperature_c, 'power_w', epoch.power_w, 'throttle_reasons', epoch.throttle_reasons,
            'unavailable', stored_json(coalesce(epoch.unavailable, '{}')),
            'suspect', stored_json(iif(epoch.suspect, 'true', 'false')), 'suspect_reason', epoch.suspect_reason) AS epoch
          FROM passes pass JOIN epochs epoch ON epoch.pass_id = pass.id WHERE pass.run_id = run.id AND pass.ordinal = 0
            ORDER BY epoch.epoch))),
      'samples', stored_json((
        SELECT json_group_array(json_object('mode', mode, 'ordinal', ordinal, 'device_us', device_us,
                                            'suspect', stored_json(iif(suspect, 'true', 'false')),
                                            'suspect_reason', suspect_reason)) FROM (
          SELECT sample.mode, sample.ordinal, sample.device_us, sample.suspect, sample.suspect_reason FROM passes pass
            JOIN samples sample ON sample.pass_id = pass.id
          WHERE pass.run_id = run.id AND pass.ordinal = 0 ORDER BY sample.mode, sample.ordinal))),
      'summary', stored_json((
        SELECT json_object(
          'epochs', run_view.epochs, 'epoch_ms_median', run_view.epoch_ms_median, 'epoch_ms_min', run_view.epoch_ms_min,
          'images_per_s', run_view.images_per_s, 'peak_memory_bytes', run_view.peak_memory_bytes,
            'test_accuracy_ratio', run_view.test_accuracy_ratio,
          'train_loss', run_view.train_loss, 'test_loss', run_view.test_loss, 'launches_per_step', run_view.launches_per_step,
          'launch_gap_ratio', run_view.launch_gap_ratio,
          'suspect', stored_json(iif(run_view.suspect, 'true', 'false')), 'suspect_cause', run_view.suspect_cause,
          'unavailable', stored_json(run_view.unavailable))
        FROM v_runs run_view WHERE run_view.run = run.id)),
      'disturbed_reason', (SELECT reason FROM v_disturbed_ceilings WHERE v_disturbed_ceilings.run = run.id),
      'measurements', stored_json((
        SELECT json_group_array(stored_json(measurement)) FROM (
          SELECT json_object('pass', pass.name, 'name', measurement.name, 'value', measurement.value,
            'reason', measurement.reason) AS measurement
          FROM passes pass JOIN measurements measurement ON measurement.pass_id = pass.id WHERE pass.run_id = run.id
            ORDER BY pass.ordinal, measurement.name)))) AS run
    FROM runs run WHERE run.job_id = job.id ORDER BY run.ordinal))))
FROM jobs job WHERE job.id = :job
