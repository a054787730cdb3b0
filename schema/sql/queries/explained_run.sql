-- Returns the numbers that explain the time and memory of a training run, and for each number that is NULL the reason. Parameter
-- :run is the id of the run.
SELECT run.variant, run."precision", job.kind,
  summary.epoch_ms_median,
  traced.value AS traced_epoch_ms, busy.value AS device_busy_ratio,
  coalesce(traced.reason, busy.reason, (SELECT reason FROM v_pass_reasons WHERE v_pass_reasons.run = run.id AND ordinal = 1))
    AS traced_reason,
  (SELECT reason FROM v_pass_reasons WHERE v_pass_reasons.run = run.id AND ordinal = 2) AS counters_reason,
  run.floor_operations AS compulsory_operations_per_epoch,
  (SELECT operations_per_s FROM v_floors WHERE pass_id = timing.id AND cache = 'warm') AS ceiling_operations_per_s,
  iif(timing.ceilings_id IS NULL, 'no ceilings of this device with its driver and clocks yet: run a job of the kind ceilings',
      'the ceilings have no rate for the arithmetic of the run') AS ceiling_reason,
  (SELECT value FROM measurements WHERE pass_id = timing.id AND name = 'memory_dataset_bytes') AS dataset_bytes,
  (SELECT value FROM measurements WHERE pass_id = timing.id AND name = 'memory_weights_bytes') AS weights_bytes,
  (SELECT value FROM measurements WHERE pass_id = timing.id AND name = 'memory_activations_bytes') AS activations_bytes,
  (SELECT value FROM measurements WHERE pass_id = timing.id AND name = 'memory_workspace_bytes') AS workspace_bytes,
  coalesce((SELECT min(reason) FROM measurements WHERE pass_id = timing.id AND name GLOB 'memory_*_bytes'),
    (SELECT reason FROM v_pass_reasons WHERE v_pass_reasons.run = run.id AND ordinal = 0)) AS memory_reason,
  (SELECT sum(skipped_steps) FROM epochs WHERE pass_id = timing.id AND warmup = 0) AS skipped_steps,
  (SELECT nullif(count(skipped_steps), 0) * run.steps_per_epoch FROM epochs WHERE pass_id = timing.id AND warmup = 0)
    AS steps_of_measured_epochs,
  (SELECT min(unavailable ->> '$.skipped_steps') FROM epochs WHERE pass_id = timing.id AND warmup = 0) AS skipped_steps_reason
FROM runs run CROSS JOIN jobs job ON job.id = run.job_id
  LEFT JOIN passes timing ON timing.run_id = run.id AND timing.ordinal = 0
  LEFT JOIN passes activity ON activity.run_id = run.id AND activity.ordinal = 1
  LEFT JOIN run_summaries summary ON summary.run_id = run.id
  LEFT JOIN measurements traced ON traced.pass_id = activity.id AND traced.name = 'epoch_traced_ms'
  LEFT JOIN measurements busy ON busy.pass_id = activity.id AND busy.name = 'device_busy_ratio'
WHERE run.id = :run
