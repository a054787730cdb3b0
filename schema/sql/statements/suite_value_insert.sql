INSERT INTO suite_values (suite_run_id, metric, role, block, value, cycles, dropped_reason, other_processes)
VALUES (:run, :metric, :role, :block, :value, :cycles, :dropped_reason, :other_processes)
ON CONFLICT DO NOTHING
