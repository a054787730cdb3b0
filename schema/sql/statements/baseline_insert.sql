INSERT INTO baselines (suite, name, suite_run_id, created_ns) VALUES (:suite, :name, :run, :now)
ON CONFLICT (suite, name) DO NOTHING
RETURNING id
