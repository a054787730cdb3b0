INSERT INTO suite_values (suite_run_id, metric, role, block, value, cycles, dropped_reason)
VALUES (:run, :metric, :role, :block, :value, :cycles, :dropped_reason)
ON CONFLICT DO NOTHING
