DELETE FROM suite_events WHERE (suite_run_id, seq) IN (
  SELECT suite_run_id, seq FROM suite_events WHERE suite_run_id = :run LIMIT :batch)
