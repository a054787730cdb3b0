-- :run :role :block :job_name :now. A step's job was submitted or has ended. json_patch drops members that are null.
INSERT INTO suite_events (suite_run_id, seq, at_ns, type, data)
SELECT r.id, r.events, :now, 'job', json_patch('{}', json_object('role', s.role, 'block', s.block, 'job_name', s.job_name,
  'job', s.job_id, 'state', s.state, 'drop_reason', s.drop_reason))
FROM suite_runs r JOIN suite_jobs s ON s.suite_run_id = r.id
WHERE r.id = :run AND s.role = :role AND s.block = :block AND s.job_name = :job_name
