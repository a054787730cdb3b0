SELECT s.suite_run_id, s.job_id FROM suite_jobs s JOIN suite_runs r ON r.id = s.suite_run_id
WHERE s.state = 'submitted' AND r.state NOT IN ('queued', 'running') LIMIT 1
