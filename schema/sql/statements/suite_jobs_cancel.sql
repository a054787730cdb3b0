UPDATE suite_jobs SET state = 'cancelled' WHERE suite_run_id = :run AND state = 'submitted'
