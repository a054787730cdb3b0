SELECT state FROM suite_runs WHERE id = :run
