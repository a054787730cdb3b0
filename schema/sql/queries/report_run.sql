-- Returns run :run for a report. Columns: the run, its numbers [[name, value, reason]...], the device's compute capability, the
-- sections that the job requested (NULL: unknown), whether L2 was empty before each kernel.
WITH modelled AS ( -- no_model: why floor_bytes and floor_operations are not the work of a single kernel; NULL: they are
  SELECT run.floor_bytes, run.floor_operations, run.floor_precision,
    CASE WHEN job.kind = 'train' THEN 'the model of a training run is of a whole epoch'
         WHEN EXISTS (SELECT 1 FROM passes pass JOIN kernels kernel ON kernel.pass_id = pass.id WHERE pass.run_id = run.id
           GROUP BY pass.id HAVING count(*) > 1)
         THEN 'the model is of all kernels of the step together' END AS no_model
  FROM runs run JOIN jobs job ON job.id = run.job_id WHERE run.id = :run)
SELECT json_object(
    'run', run.id, 'job', job.id, 'kind', job.kind, 'workload', run.workload, 'variant', run.variant,
    'params', stored_json(run.params), 'engine', run.engine, 'device', job.device,
      'device_properties', stored_json(device_row.properties),
    'commit', coalesce(counters.git_commit, timing.git_commit, activity.git_commit),
    'at', coalesce(utc_text(counters.finished_ns), utc_text(timing.finished_ns), utc_text(activity.finished_ns)),
    'counters_reason', (SELECT reason FROM v_pass_reasons WHERE v_pass_reasons.run = run.id AND ordinal = 2),
    'cache', iif(job.profile IS NOT NULL, coalesce(job.profile ->> '$.cache', 'full'), NULL), -- old profiles lack the key
    'ceilings_reason', CASE
      WHEN job.kind = 'import' THEN 'an imported trace has no device whose ceilings were measured'
      WHEN device_row.id IS NULL THEN iif(job.state IN ('completed', 'failed', 'cancelled'),
        'the job ended before a pass reported its device', 'no pass has reported its device yet')
      WHEN NOT EXISTS (SELECT 1 FROM v_ceiling_passes ceiling_pass WHERE ceiling_pass.device_identity = device_row.identity
        AND ceiling_pass.driver IS device_row.driver
                         AND ceiling_pass.sm_clock_max_mhz IS device_row.sm_clock_max_mhz
                           AND ceiling_pass.memory_clock_max_mhz IS device_row.memory_clock_max_mhz
                         AND ceiling_pass.clock_setting IS device_row.clock_setting)
      THEN coalesce((
        SELECT printf('the ceilings are stale: run %d measured %s%s, and this run was on %s%s', ceiling_pass.run,
          ceiling_pass.device_identity,
                      coalesce(' with driver ' || ceiling_pass.driver, ''), device_row.identity,
                        coalesce(' with driver ' || device_row.driver, ''))
          || iif(ceiling_pass.device_identity = device_row.identity AND ceiling_pass.driver IS device_row.driver,
            ' at other clocks', '')
        FROM v_ceiling_passes ceiling_pass WHERE ceiling_pass.device = job.device ORDER BY ceiling_pass.run DESC LIMIT 1),
        'no ceilings of this device were measured yet') END,
    'ceilings_disturbed_reason', (
      SELECT ceiling_pass.disturbed_reason FROM v_ceiling_passes ceiling_pass
      WHERE ceiling_pass.device_identity = device_row.identity AND ceiling_pass.driver IS device_row.driver
        AND ceiling_pass.sm_clock_max_mhz IS device_row.sm_clock_max_mhz
        AND ceiling_pass.memory_clock_max_mhz IS device_row.memory_clock_max_mhz
        AND ceiling_pass.clock_setting IS device_row.clock_setting)),
  (SELECT json_group_array(json_array(name, value, reason)) FROM (
     SELECT pass.name || '__' || measurement.name AS name, measurement.value, measurement.reason FROM passes pass
       JOIN measurements measurement ON measurement.pass_id = pass.id
     WHERE pass.run_id = run.id AND pass.name IN ('timing', 'activity')
     UNION ALL SELECT 'model__bytes', iif(no_model IS NULL, floor_bytes, NULL),
                      coalesce(no_model, 'the workload has no model') FROM modelled
     UNION ALL SELECT 'model__operations', iif(no_model IS NULL, floor_operations, NULL),
                      coalesce(no_model, 'the workload has no model') FROM modelled
     UNION ALL SELECT 'model__operations_ceiling_per_s', max(ceiling.value),
                      iif(max(ceiling.value) IS NULL, 'the device has no measured rate for the precision of these operations', NULL)
               FROM modelled JOIN precision_rates ON precision_rates.precision = modelled.floor_precision
                 JOIN v_ceilings ceiling ON ceiling.name = precision_rates.name
               WHERE ceiling.device_identity = device_row.identity AND ceiling.driver IS device_row.driver
     UNION ALL SELECT 'ceiling__' || ceiling.name, ceiling.value, ceiling.reason FROM v_ceilings ceiling
               WHERE ceiling.device_identity = device_row.identity AND ceiling.driver IS device_row.driver)),
  device_row.properties ->> '$.compute_capability',
  job.profile -> '$.sections',
  coalesce(job.profile ->> '$.cache' = 'empty', 0)
FROM runs run JOIN jobs job ON job.id = run.job_id
  LEFT JOIN passes timing ON timing.run_id = run.id AND timing.name = 'timing'
  LEFT JOIN passes counters ON counters.run_id = run.id AND counters.name = 'counters'
  LEFT JOIN passes activity ON activity.run_id = run.id AND activity.name = 'activity'
  LEFT JOIN devices device_row ON device_row.id = coalesce(counters.device_id, timing.device_id, activity.device_id)
WHERE run.id = :run
