-- :id. A job with its runs and their passes.
SELECT json_object(
  'id', j.id, 'kind', j.kind, 'origin', j.origin,
  'state', iif(j.state = 'running' AND is_storing(j.id), 'storing', j.state), 'device', j.device,
  'created_at', utc_text(j.created_ns), 'started_at', utc_text(j.started_ns), 'finished_at', utc_text(j.finished_ns),
  'request', stored_json(j.request),
  'passes', stored_json((SELECT json_object('total', count(*), 'pending', count(*) FILTER (WHERE state = 'pending'),
                                     'running', count(*) FILTER (WHERE state = 'running'),
                                     'completed', count(*) FILTER (WHERE state = 'completed'),
                                     'unavailable', count(*) FILTER (WHERE state = 'unavailable'))
                  FROM passes WHERE job_id = j.id)),
  'worker_deaths', j.worker_deaths, 'daemon_deaths', j.daemon_deaths,
  'problem', stored_json(iif(j.problem_message IS NULL, 'null', json_object(
    'domain', j.problem_domain, 'code', j.problem_code, 'message', j.problem_message))),
  'runs', stored_json((
    SELECT json_group_array(stored_json(run)) FROM (
      SELECT json_object('id', r.id, 'workload', r.workload, 'variant', r.variant, 'log', r.log, 'passes', stored_json((
        SELECT json_group_array(stored_json(pass)) FROM (
          SELECT json_object('pass', p.name, 'state', p.state, 'reason', p.reason, 'started_at', utc_text(p.started_ns),
                             'finished_at', utc_text(p.finished_ns)) AS pass
          FROM passes p WHERE p.run_id = r.id ORDER BY p.ordinal)))) AS run
      FROM runs r WHERE r.job_id = j.id ORDER BY r.ordinal))))
FROM jobs j WHERE j.id = :id
