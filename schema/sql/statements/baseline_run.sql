SELECT suite_run_id FROM baselines WHERE suite = :suite AND name = :name
