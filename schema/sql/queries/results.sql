-- :job. The results of a job's runs.
SELECT json_object('job', j.id, 'state', iif(j.state = 'running' AND is_storing(j.id), 'storing', j.state), 'runs', stored_json((
  SELECT json_group_array(stored_json(run)) FROM (
    SELECT json_object(
      'run', r.id, 'workload', r.workload, 'variant', r.variant, 'engine', r.engine,
      'dataset', r.dataset, 'dataset_sha256', r.dataset_sha256,
      'deterministic', stored_json(CASE r.deterministic WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'null' END),
      'deterministic_note', r.deterministic_note,
      'partial', stored_json(CASE r."partial" WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'null' END),
      'params', stored_json(r.params),
      'images_per_epoch', r.images_per_epoch, 'steps_per_epoch', r.steps_per_epoch, 'parameters', r.parameters,
      'floor_operations', r.floor_operations, 'floor_precision', r.floor_precision, 'floor_bytes', r.floor_bytes,
      'floor_written_bytes', r.floor_written_bytes,
      'device', stored_json(coalesce((
        SELECT d.properties FROM passes p JOIN devices d ON d.id = p.device_id
        WHERE p.run_id = r.id ORDER BY p.ordinal LIMIT 1), 'null')),
      'commit', (SELECT git_commit FROM passes WHERE run_id = r.id AND git_commit IS NOT NULL ORDER BY ordinal LIMIT 1),
      'passes', stored_json((
        SELECT json_group_array(stored_json(pass)) FROM (
          SELECT json_object('pass', p.name, 'state', p.state, 'reason', p.reason, 'started_at', utc_text(p.started_ns),
                             'finished_at', utc_text(p.finished_ns), 'commit', p.git_commit,
                             'activity_rows', p.activity_rows,
                             'activity_kept', stored_json(iif(p.activity_kept, 'true', 'false'))) AS pass
          FROM passes p WHERE p.run_id = r.id ORDER BY p.ordinal))),
      'epochs', stored_json((
        SELECT json_group_array(stored_json(epoch)) FROM (
          SELECT json_object(
            'epoch', e.epoch, 'warmup', stored_json(iif(e.warmup, 'true', 'false')), 'epoch_ms', e.epoch_ms,
            'device_ms', e.device_ms, 'host_ms', e.host_ms, 'evaluation_ms', e.evaluation_ms,
            'images', e.images, 'images_per_s', e.images * 1000 / e.epoch_ms, 'train_loss', e.train_loss,
            'test_loss', e.test_loss, 'test_accuracy_ratio', e.test_accuracy_ratio, 'loss_scale', e.loss_scale,
            'skipped_steps', e.skipped_steps, 'sm_clock_before_mhz', e.sm_clock_before_mhz,
            'sm_clock_after_mhz', e.sm_clock_after_mhz, 'memory_clock_mhz', e.memory_clock_mhz,
            'temperature_c', e.temperature_c, 'power_w', e.power_w, 'throttle_reasons', e.throttle_reasons,
            'unavailable', stored_json(coalesce(e.unavailable, '{}')),
            'suspect', stored_json(iif(e.suspect, 'true', 'false')), 'suspect_reason', e.suspect_reason) AS epoch
          FROM passes p JOIN epochs e ON e.pass_id = p.id WHERE p.run_id = r.id AND p.ordinal = 0 ORDER BY e.epoch))),
      'samples', stored_json((
        SELECT json_group_array(json_object('mode', mode, 'ordinal', ordinal, 'device_us', device_us,
                                            'suspect', stored_json(iif(suspect, 'true', 'false')),
                                            'suspect_reason', suspect_reason)) FROM (
          SELECT s.mode, s.ordinal, s.device_us, s.suspect, s.suspect_reason FROM passes p JOIN samples s ON s.pass_id = p.id
          WHERE p.run_id = r.id AND p.ordinal = 0 ORDER BY s.mode, s.ordinal))),
      'summary', stored_json((
        SELECT json_object(
          'epochs', v.epochs, 'epoch_ms_median', v.epoch_ms_median, 'epoch_ms_min', v.epoch_ms_min,
          'images_per_s', v.images_per_s, 'peak_memory_bytes', v.peak_memory_bytes, 'test_accuracy_ratio', v.test_accuracy_ratio,
          'train_loss', v.train_loss, 'test_loss', v.test_loss, 'launches_per_step', v.launches_per_step,
          'launch_gap_ratio', v.launch_gap_ratio,
          'suspect', stored_json(iif(v.suspect, 'true', 'false')), 'unavailable', stored_json(v.unavailable))
        FROM v_runs v WHERE v.run = r.id)),
      'measurements', stored_json((
        SELECT json_group_array(stored_json(measurement)) FROM (
          SELECT json_object('pass', p.name, 'name', m.name, 'value', m.value, 'reason', m.reason) AS measurement
          FROM passes p JOIN measurements m ON m.pass_id = p.id WHERE p.run_id = r.id ORDER BY p.ordinal, m.name)))) AS run
    FROM runs r WHERE r.job_id = j.id ORDER BY r.ordinal))))
FROM jobs j WHERE j.id = :job
