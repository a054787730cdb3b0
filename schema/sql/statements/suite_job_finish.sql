UPDATE suite_jobs SET state = :state, drop_reason = :drop_reason,
  busy_s = (SELECT (j.finished_ns - j.started_ns) / 1e9 FROM jobs j WHERE j.id = suite_jobs.job_id)
WHERE suite_run_id = :run AND role = :role AND block = :block AND job_name = :job_name
  AND state = 'submitted'
