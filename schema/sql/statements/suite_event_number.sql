UPDATE suite_runs SET events = events + 1 WHERE id = :run
