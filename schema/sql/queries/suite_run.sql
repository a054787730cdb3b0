-- Returns suite run :id with its jobs, verdicts, events of the webhook and values. :now is the time in ns since 1970, from which
-- elapsed_s is computed.
SELECT substr(suite_run.listing, 1, length(suite_run.listing) - 1) || ',' || substr(json_object(
  'estimated_s', suite_run.planned_s, 'estimate_basis', suite_run.planned_basis,
  'elapsed_s', iif(suite_run.started_ns IS NULL, 0.0, max(0.0, (coalesce(suite_run.finished_ns,
    :now) - suite_run.started_ns) / 1e9)),
  'progress', stored_json((
    SELECT json_object('done', count(*) FILTER (WHERE suite_job.state <> 'submitted'), 'of', max(suite_run.planned_jobs,
      count(*)),
                       'job', max(iif(suite_job.state = 'submitted', suite_job.job_id, NULL)),
                       'role', max(iif(suite_job.state = 'submitted', suite_job.role, NULL)))
    FROM suite_jobs suite_job WHERE suite_job.suite_run_id = suite_run.id)),
  'baseline', stored_json(json_object('name', suite_run.against, 'request', stored_json(coalesce(suite_run.against_request,
    'null')),
                                      'order_seed', suite_run.order_seed, 'runs', stored_json(coalesce(suite_run.baseline_runs,
                                        '[]')))),
  'jobs', stored_json((
    SELECT json_group_array(stored_json(item)) FROM (
      SELECT json_object('role', suite_job.role, 'block', suite_job.block, 'job_name', suite_job.job_name,
        'job', suite_job.job_id,
                         'state', iif(suite_job.state = 'submitted', coalesce(job.state, 'queued'), suite_job.state),
                         'drop_reason', suite_job.drop_reason) AS item
      FROM suite_jobs suite_job LEFT JOIN jobs job ON job.id = suite_job.job_id WHERE suite_job.suite_run_id = suite_run.id
        ORDER BY suite_job.ordinal))),
  'verdicts', stored_json((
    SELECT json_group_array(stored_json(item)) FROM (
      SELECT substr(suite_verdict.judgement, 1, length(suite_verdict.judgement) - 1) || ',"causes":' || suite_verdict.causes || '}' AS item
      FROM suite_verdicts suite_verdict WHERE suite_verdict.suite_run_id = suite_run.id ORDER BY suite_verdict.metric))),
  'webhook_events', stored_json((
    SELECT json_group_array(stored_json(item)) FROM (
      SELECT json_object('id', webhook_events.event_id, 'type', webhook_events.type, 'state', webhook_events.state,
        'attempts', webhook_events.attempts,
                         'created_at', utc_text(webhook_events.created_ns),
                           'next_attempt_at', utc_text(webhook_events.next_attempt_ns),
                         'ended_at', utc_text(webhook_events.ended_ns), 'last_error', webhook_events.last_error) AS item
      FROM webhook_events WHERE webhook_events.suite_run_id = suite_run.id ORDER BY webhook_events.id))),
  'values', stored_json((
    SELECT json_group_array(stored_json(item)) FROM (
      SELECT json_object('metric', suite_value.metric, 'role', suite_value.role, 'block', suite_value.block,
        'value', suite_value.value,
                         'dropped_reason', suite_value.dropped_reason, 'other_processes', suite_value.other_processes) AS item
      FROM suite_values suite_value WHERE suite_value.suite_run_id = suite_run.id ORDER BY suite_value.metric, suite_value.role,
        suite_value.block)))), 2)
FROM suite_runs suite_run WHERE suite_run.id = :id
