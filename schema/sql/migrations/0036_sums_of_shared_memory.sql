-- Rows mark the sum of static and dynamic shared memory. Before, every dynamic shared memory without a static one counted as the sum,
-- which is true of Kineto's traces.
UPDATE activity_dictionary SET unknown_values = unknown_values | 16
WHERE unknown_values & 6 = 2
  AND pass_id IN (SELECT pass.id FROM runs run JOIN passes pass ON pass.run_id = run.id
    WHERE run.workload = 'imported_trace' AND run.variant <> 'nsys');
PRAGMA user_version = 36;
