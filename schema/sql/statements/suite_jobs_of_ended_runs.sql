SELECT suite_job.suite_run_id, suite_job.job_id FROM suite_jobs suite_job JOIN suite_runs suite_run
  ON suite_run.id = suite_job.suite_run_id
WHERE suite_job.state = 'submitted' AND suite_run.state NOT IN ('queued', 'running') LIMIT 1
