DELETE FROM suite_values WHERE (suite_run_id, metric, role, block) IN (
  SELECT suite_run_id, metric, role, block FROM suite_values WHERE suite_run_id = :run LIMIT :batch)
