-- Adds the series to which run :run belongs, or those of all runs (:run NULL).
INSERT OR IGNORE INTO history_series (workload, device, metrics)
SELECT workload, device, metrics FROM v_history
WHERE run_id BETWEEN coalesce(:run, 0) AND coalesce(:run, 9223372036854775807) AND metrics <> '[]'
