SELECT p.job_id, p.run_id, p.id, p.ordinal, r.variant
FROM jobs j JOIN passes p ON p.job_id = j.id JOIN runs r ON r.id = p.run_id
WHERE j.state IN ('running', 'interrupted') AND p.state = 'running'
ORDER BY p.id LIMIT 1
