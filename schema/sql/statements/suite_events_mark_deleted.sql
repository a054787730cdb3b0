UPDATE suite_runs SET events_kept = 0 WHERE id = :run
