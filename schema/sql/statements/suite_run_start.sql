UPDATE suite_runs SET state = 'running', started_ns = :now WHERE id = :run AND state = 'queued'
