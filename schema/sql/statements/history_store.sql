-- :run; NULL: all runs.
INSERT INTO history (pass_id, run_id, series_id, configuration_id, finished_ns, point)
SELECT h.pass_id, h.run_id, s.id, c.id, h.finished_ns, h.point
FROM v_history h
  CROSS JOIN history_series s ON s.workload = h.workload AND s.device = h.device AND s.metrics = h.metrics
  CROSS JOIN configurations c ON c.workload = h.workload AND c.variant = h.variant AND c.nondefault_params = h.nondefault_params
    AND c.device = h.device
WHERE h.run_id BETWEEN coalesce(:run, 0) AND coalesce(:run, 9223372036854775807)
ON CONFLICT (pass_id) DO UPDATE SET run_id = excluded.run_id, series_id = excluded.series_id,
  configuration_id = excluded.configuration_id, finished_ns = excluded.finished_ns, point = excluded.point
