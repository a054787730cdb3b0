UPDATE suite_jobs SET state = :state, drop_reason = :drop_reason,
  busy_s = (SELECT (job.finished_ns - job.started_ns) / 1e9 FROM jobs job WHERE job.id = suite_jobs.job_id)
WHERE suite_run_id = :run AND role = :role AND block = :block AND job_name = :job_name
  AND state = 'submitted'
