SELECT count(*) FROM suite_runs WHERE state IN ('queued', 'running')
