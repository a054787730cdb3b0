-- :run. The numbers that explain the time and memory of a training run. Columns: variant, precision, kind of job; epoch ms
-- median; traced epoch ms, its busy share, why it is unknown; why there are no counters; minimum operations of an epoch, their
-- measured rate, why it is unknown; bytes for the data set, weights, activations and workspace, why they are unknown; skipped
-- steps and steps of all epochs, why they are unknown.
SELECT r.variant, r."precision", j.kind,
  s.epoch_ms_median,
  traced.value, busy.value,
  coalesce(traced.reason, busy.reason, CASE
    WHEN a.id IS NULL THEN 'the job did not ask for the activity pass'
    WHEN a.state = 'unavailable' THEN a.reason
    WHEN a.state <> 'completed' THEN 'the activity pass is ' || a.state END),
  CASE
    WHEN c.id IS NULL THEN 'the job did not ask for the counters pass'
    WHEN c.state = 'unavailable' THEN c.reason
    WHEN c.state <> 'completed' THEN 'the counters pass is ' || c.state END,
  r.floor_operations,
  (SELECT operations_per_s FROM v_floors WHERE pass_id = t.id AND cache = 'warm'),
  iif(t.ceilings_id IS NULL, 'no ceilings of this device with its driver and clocks yet: run a job of the kind ceilings',
      'the ceilings have no rate for the arithmetic of the run'),
  (SELECT value FROM measurements WHERE pass_id = t.id AND name = 'memory_dataset_bytes'),
  (SELECT value FROM measurements WHERE pass_id = t.id AND name = 'memory_weights_bytes'),
  (SELECT value FROM measurements WHERE pass_id = t.id AND name = 'memory_activations_bytes'),
  (SELECT value FROM measurements WHERE pass_id = t.id AND name = 'memory_workspace_bytes'),
  coalesce((SELECT min(reason) FROM measurements WHERE pass_id = t.id AND name GLOB 'memory_*_bytes'), CASE
    WHEN t.id IS NULL THEN 'the job did not ask for the timing pass'
    WHEN t.state = 'unavailable' THEN t.reason
    WHEN t.state <> 'completed' THEN 'the timing pass is ' || t.state END),
  (SELECT max(skipped_steps) FROM epochs WHERE pass_id = t.id),
  (SELECT nullif(count(skipped_steps), 0) * r.steps_per_epoch FROM epochs WHERE pass_id = t.id),
  (SELECT min(unavailable ->> '$.skipped_steps') FROM epochs WHERE pass_id = t.id)
FROM runs r CROSS JOIN jobs j ON j.id = r.job_id
  LEFT JOIN passes t ON t.run_id = r.id AND t.ordinal = 0
  LEFT JOIN passes a ON a.run_id = r.id AND a.ordinal = 1
  LEFT JOIN passes c ON c.run_id = r.id AND c.ordinal = 2
  LEFT JOIN run_summaries s ON s.run_id = r.id
  LEFT JOIN measurements traced ON traced.pass_id = a.id AND traced.name = 'epoch_traced_ms'
  LEFT JOIN measurements busy ON busy.pass_id = a.id AND busy.name = 'device_busy_ratio'
WHERE r.id = :run
