-- :run. Columns: the run, its numbers [[name, value, reason]...], the device's compute capability, the requested sections (NULL:
-- unknown).
WITH modelled AS ( -- no_model: why the workload's minimum work can't be used as that of one kernel
  SELECT r.floor_bytes, r.floor_operations,
    CASE WHEN j.kind = 'train' THEN 'the model of a training run is of a whole epoch'
         WHEN (SELECT count(*) FROM passes p JOIN kernels k ON k.pass_id = p.id WHERE p.run_id = r.id AND p.name = 'counters') > 1
         THEN 'the model is of all kernels of the step together' END AS no_model
  FROM runs r JOIN jobs j ON j.id = r.job_id WHERE r.id = :run)
SELECT json_object(
    'run', r.id, 'job', j.id, 'kind', j.kind, 'workload', r.workload, 'variant', r.variant,
    'params', stored_json(r.params), 'engine', r.engine, 'device', j.device, 'device_properties', stored_json(d.properties),
    'commit', coalesce(c.git_commit, t.git_commit),
    'at', coalesce(utc_text(c.finished_ns), utc_text(t.finished_ns)),
    'counters_reason', CASE WHEN c.id IS NULL THEN 'the job did not ask for the counters pass'
                            WHEN c.state = 'unavailable' THEN c.reason
                            WHEN c.state <> 'completed' THEN 'the counters pass is ' || c.state END,
    'ceilings_reason', CASE
      WHEN d.id IS NULL THEN 'no pass has reported its device yet'
      WHEN NOT EXISTS (SELECT 1 FROM v_ceiling_passes x WHERE x.device_identity = d.identity AND x.driver IS d.driver
                         AND x.sm_clock_max_mhz IS d.sm_clock_max_mhz AND x.memory_clock_max_mhz IS d.memory_clock_max_mhz
                         AND x.clock_setting IS d.clock_setting)
      THEN coalesce((
        SELECT printf('the ceilings are stale: run %d measured %s%s, and this run was on %s%s', x.run, x.device_identity,
                      coalesce(' with driver ' || x.driver, ''), d.identity, coalesce(' with driver ' || d.driver, ''))
          || iif(x.device_identity = d.identity AND x.driver IS d.driver, ' at other clocks', '')
        FROM v_ceiling_passes x WHERE x.device = j.device ORDER BY x.run DESC LIMIT 1),
        'no ceilings of this device were measured yet') END),
  (SELECT json_group_array(json_array(name, value, reason)) FROM (
     SELECT p.name || '__' || m.name AS name, m.value, m.reason FROM passes p JOIN measurements m ON m.pass_id = p.id
     WHERE p.run_id = r.id AND p.name IN ('timing', 'activity')
     UNION ALL SELECT 'model__bytes', iif(no_model IS NULL, floor_bytes, NULL),
                      coalesce(no_model, 'the workload has no model') FROM modelled
     UNION ALL SELECT 'model__operations', iif(no_model IS NULL, floor_operations, NULL),
                      coalesce(no_model, 'the workload has no model') FROM modelled
     UNION ALL SELECT 'ceiling__' || c.name, c.value, c.reason FROM v_ceilings c
               WHERE c.device_identity = d.identity AND c.driver IS d.driver)),
  d.properties ->> '$.compute_capability',
  j.profile -> '$.sections'
FROM runs r JOIN jobs j ON j.id = r.job_id
  LEFT JOIN passes t ON t.run_id = r.id AND t.name = 'timing'
  LEFT JOIN passes c ON c.run_id = r.id AND c.name = 'counters'
  LEFT JOIN devices d ON d.id = coalesce(c.device_id, t.device_id)
WHERE r.id = :run
