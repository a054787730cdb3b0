-- Adds an event of suite run :run: the job :job_name of block :block in the role :role was submitted or has ended. json_patch
-- drops members that are null.
INSERT INTO suite_events (suite_run_id, seq, at_ns, type, data)
SELECT suite_run.id, suite_run.events, :now, 'job', json_patch('{}', json_object('role', suite_job.role,
  'block', suite_job.block, 'job_name', suite_job.job_name,
  'job', suite_job.job_id, 'state', suite_job.state, 'drop_reason', suite_job.drop_reason))
FROM suite_runs suite_run JOIN suite_jobs suite_job ON suite_job.suite_run_id = suite_run.id
WHERE suite_run.id = :run AND suite_job.role = :role AND suite_job.block = :block AND suite_job.job_name = :job_name
