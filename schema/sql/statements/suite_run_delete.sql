DELETE FROM suite_runs WHERE id = :run AND state NOT IN ('queued', 'running')
