-- Returns job :id with its runs and their passes.
SELECT json_object(
  'id', job.id, 'kind', job.kind, 'origin', job.origin,
  'state', iif(job.state = 'running' AND has_unstored_results(job.id), 'storing', job.state), 'device', job.device,
  'created_at', utc_text(job.created_ns), 'started_at', utc_text(job.started_ns), 'finished_at', utc_text(job.finished_ns),
  'request', stored_json(job.request),
  'passes', stored_json((SELECT json_object('total', count(*), 'pending', count(*) FILTER (WHERE state = 'pending'),
                                     'running', count(*) FILTER (WHERE state = 'running'),
                                     'completed', count(*) FILTER (WHERE state = 'completed'),
                                     'unavailable', count(*) FILTER (WHERE state = 'unavailable'))
                  FROM passes WHERE job_id = job.id)),
  'worker_deaths', job.worker_deaths, 'daemon_deaths', job.daemon_deaths,
  'problem', stored_json(iif(job.problem_message IS NULL, 'null', json_object(
    'domain', job.problem_domain, 'code', job.problem_code, 'message', job.problem_message))),
  'runs', stored_json((
    SELECT json_group_array(stored_json(run)) FROM (
      SELECT json_object('id', run.id, 'workload', run.workload, 'variant', run.variant, 'log', run.log, 'passes', stored_json((
        SELECT json_group_array(stored_json(pass)) FROM (
          SELECT json_object('pass', pass.name, 'state', pass.state, 'reason', pass.reason,
            'started_at', utc_text(pass.started_ns),
                             'finished_at', utc_text(pass.finished_ns)) AS pass
          FROM passes pass WHERE pass.run_id = run.id ORDER BY pass.ordinal)))) AS run
      FROM runs run WHERE run.job_id = job.id ORDER BY run.ordinal))))
FROM jobs job WHERE job.id = :id
