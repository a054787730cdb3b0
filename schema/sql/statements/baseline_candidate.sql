SELECT suite, state, quarantine_reason, (SELECT count(*) FROM suite_values v WHERE v.suite_run_id = r.id
  AND v.role = 'block' AND v.dropped_reason IS NOT NULL), (SELECT count(*) FROM suite_values v WHERE v.suite_run_id = r.id
  AND v.role = 'block' AND v.dropped_reason IS NULL)
FROM suite_runs r WHERE r.id = :run
