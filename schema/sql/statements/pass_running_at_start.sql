SELECT pass.job_id, pass.run_id, pass.id, pass.ordinal, run.variant
FROM jobs job JOIN passes pass ON pass.job_id = job.id JOIN runs run ON run.id = pass.run_id
WHERE job.state IN ('running', 'interrupted') AND pass.state = 'running'
ORDER BY pass.id LIMIT 1
