-- Returns the runs of job :job, or its run :run (NULL: all runs). Columns: the conditions of the run's trace, id of the run.
SELECT json_object('job', job.id, 'run', run.id, 'kind', job.kind, 'workload', run.workload, 'variant', run.variant,
  'engine', run.engine,
    'device', job.device, 'device_properties', stored_json(device_row.properties), 'commit', pass.git_commit,
    'started_at', pass.started_at), run.id
FROM jobs job JOIN runs run ON run.job_id = job.id
  LEFT JOIN passes pass ON pass.id = coalesce(
    (SELECT id FROM passes WHERE run_id = run.id AND ordinal = 1), (SELECT id FROM passes WHERE run_id = run.id
      ORDER BY ordinal LIMIT 1))
  LEFT JOIN devices device_row ON device_row.id = pass.device_id
WHERE job.id = :job AND (:run IS NULL OR run.id = :run) ORDER BY run.ordinal
