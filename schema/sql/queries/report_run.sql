-- :run; columns: the run, numbers of the run [[name, value, reason]...], the device's compute capability, the sections that were asked for (NULL:
-- not known)
SELECT json_object(
    'run', r.id, 'job', j.id, 'kind', j.kind, 'workload', r.workload, 'variant', r.variant, 'params', json(r.params), 'engine', r.engine,
    'device', j.device, 'device_facts', json(coalesce(d.facts, 'null')), 'commit', coalesce(c.git_commit, t.git_commit),
    'at', coalesce(c.finished_at, t.finished_at),
    'counters_reason', CASE WHEN c.id IS NULL THEN 'the job did not ask for the counters pass'
                            WHEN c.state = 'unavailable' THEN c.reason
                            WHEN c.state <> 'completed' THEN 'the counters pass is ' || c.state END),
  (SELECT json_group_array(json_array(name, value, reason)) FROM (
     SELECT p.name || '__' || m.name AS name, m.value, m.reason FROM measurements m JOIN passes p ON p.id = m.pass_id
     WHERE p.run_id = r.id AND p.name IN ('timing', 'activity')
     UNION ALL SELECT 'model__bytes', iif(no_model IS NULL, r.floor_bytes, NULL), coalesce(no_model, 'the workload has no model')
     UNION ALL SELECT 'model__operations', iif(no_model IS NULL, r.floor_operations, NULL), coalesce(no_model, 'the workload has no model'))),
  d.facts ->> '$.compute_capability',
  NULL
FROM (SELECT runs.*, CASE WHEN kind = 'train' THEN 'the model of a training run is of a whole epoch'
                          WHEN (SELECT count(*) FROM kernels k JOIN passes p ON p.id = k.pass_id WHERE p.run_id = runs.id AND p.name = 'counters') > 1
                            THEN 'the model is of all kernels of the step together' END AS no_model
      FROM runs JOIN jobs ON jobs.id = runs.job_id WHERE runs.id = :run) r
  JOIN jobs j ON j.id = r.job_id
  LEFT JOIN passes t ON t.run_id = r.id AND t.name = 'timing'
  LEFT JOIN passes c ON c.run_id = r.id AND c.name = 'counters'
  LEFT JOIN devices d ON d.id = coalesce(c.device_id, t.device_id)
