-- :id. A job with its runs and their passes.
SELECT json_object(
  'id', j.id, 'kind', j.kind, 'origin', j.origin, 'state', j.state, 'device', j.device,
  'created_at', j.created_at, 'started_at', j.started_at, 'finished_at', j.finished_at,
  'request', json(j.request),
  'passes', json((SELECT json_object('total', count(*), 'pending', count(*) FILTER (WHERE state = 'pending'),
                                     'running', count(*) FILTER (WHERE state = 'running'),
                                     'completed', count(*) FILTER (WHERE state = 'completed'),
                                     'unavailable', count(*) FILTER (WHERE state = 'unavailable'))
                  FROM passes WHERE job_id = j.id)),
  'worker_deaths', j.worker_deaths, 'daemon_deaths', j.daemon_deaths,
  'problem', json(iif(j.problem_message IS NULL, 'null', json_object(
    'domain', j.problem_domain, 'code', j.problem_code, 'message', j.problem_message))),
  'runs', json((
    SELECT json_group_array(json(run)) FROM (
      SELECT json_object('id', r.id, 'workload', r.workload, 'variant', r.variant, 'log', r.log, 'passes', json((
        SELECT json_group_array(json(pass)) FROM (
          SELECT json_object('pass', p.name, 'state', p.state, 'reason', p.reason, 'started_at', p.started_at,
                             'finished_at', p.finished_at) AS pass
          FROM passes p WHERE p.run_id = r.id ORDER BY p.ordinal)))) AS run
      FROM runs r WHERE r.job_id = j.id ORDER BY r.ordinal))))
FROM jobs j WHERE j.id = :id
