-- :job :run. The runs of a job, or one of them, with the conditions of their traces. Columns: the conditions, run.
SELECT json_object('job', j.id, 'run', r.id, 'kind', j.kind, 'workload', r.workload, 'variant', r.variant, 'engine', r.engine,
    'device', j.device, 'device_properties', stored_json(d.properties), 'commit', p.git_commit,
    'started_at', p.started_at), r.id
FROM jobs j JOIN runs r ON r.job_id = j.id
  LEFT JOIN passes p ON p.id = coalesce(
    (SELECT id FROM passes WHERE run_id = r.id AND ordinal = 1), (SELECT id FROM passes WHERE run_id = r.id ORDER BY ordinal LIMIT 1))
  LEFT JOIN devices d ON d.id = p.device_id
WHERE j.id = :job AND (:run IS NULL OR r.id = :run) ORDER BY r.ordinal
