-- :id :now. A suite run with its jobs, verdicts, events of the webhook and values. :now: ns since 1970, for elapsed_s.
SELECT substr(r.listing, 1, length(r.listing) - 1) || ',' || substr(json_object(
  'estimated_s', r.planned_s, 'estimate_basis', r.planned_basis,
  'elapsed_s', iif(r.started_ns IS NULL, 0.0, max(0.0, (coalesce(r.finished_ns, :now) - r.started_ns) / 1e9)),
  'progress', stored_json((
    SELECT json_object('done', count(*) FILTER (WHERE s.state <> 'submitted'), 'of', max(r.planned_jobs, count(*)),
                       'job', max(iif(s.state = 'submitted', s.job_id, NULL)),
                       'role', max(iif(s.state = 'submitted', s.role, NULL)))
    FROM suite_jobs s WHERE s.suite_run_id = r.id)),
  'baseline', stored_json(json_object('name', r.against, 'request', stored_json(coalesce(r.against_request, 'null')),
                                      'order_seed', r.order_seed, 'runs', stored_json(coalesce(r.baseline_runs, '[]')))),
  'jobs', stored_json((
    SELECT json_group_array(stored_json(item)) FROM (
      SELECT json_object('role', s.role, 'block', s.block, 'job_name', s.job_name, 'job', s.job_id,
                         'state', iif(s.state = 'submitted', coalesce(j.state, 'queued'), s.state),
                         'drop_reason', s.drop_reason) AS item
      FROM suite_jobs s LEFT JOIN jobs j ON j.id = s.job_id WHERE s.suite_run_id = r.id ORDER BY s.ordinal))),
  'verdicts', stored_json((
    SELECT json_group_array(stored_json(item)) FROM (
      SELECT substr(v.judgement, 1, length(v.judgement) - 1) || ',"causes":' || v.causes || '}' AS item
      FROM suite_verdicts v WHERE v.suite_run_id = r.id ORDER BY v.metric))),
  'webhook_events', stored_json((
    SELECT json_group_array(stored_json(item)) FROM (
      SELECT json_object('id', e.event_id, 'type', e.type, 'state', e.state, 'attempts', e.attempts,
                         'created_at', utc_text(e.created_ns), 'next_attempt_at', utc_text(e.next_attempt_ns),
                         'ended_at', utc_text(e.ended_ns), 'last_error', e.last_error) AS item
      FROM webhook_events e WHERE e.suite_run_id = r.id ORDER BY e.id))),
  'values', stored_json((
    SELECT json_group_array(stored_json(item)) FROM (
      SELECT json_object('metric', v.metric, 'role', v.role, 'block', v.block, 'value', v.value,
                         'dropped_reason', v.dropped_reason, 'other_processes', v.other_processes) AS item
      FROM suite_values v WHERE v.suite_run_id = r.id ORDER BY v.metric, v.role, v.block)))), 2)
FROM suite_runs r WHERE r.id = :id
