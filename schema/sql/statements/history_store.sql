-- Stores the points of run :run in the history, or those of all runs (:run NULL).
INSERT INTO history (pass_id, run_id, series_id, configuration_id, finished_ns, point)
SELECT v_history.pass_id, v_history.run_id, series.id, configuration.id, v_history.finished_ns, v_history.point
FROM v_history
  CROSS JOIN history_series series ON series.workload = v_history.workload AND series.device = v_history.device
    AND series.metrics = v_history.metrics
  CROSS JOIN configurations configuration ON configuration.workload = v_history.workload
    AND configuration.variant = v_history.variant AND configuration.nondefault_params = v_history.nondefault_params
    AND configuration.device = v_history.device
WHERE v_history.run_id BETWEEN coalesce(:run, 0) AND coalesce(:run, 9223372036854775807)
ON CONFLICT (pass_id) DO UPDATE SET run_id = excluded.run_id, series_id = excluded.series_id,
  configuration_id = excluded.configuration_id, finished_ns = excluded.finished_ns, point = excluded.point
