-- Stores the summary of run :run, or of all runs (:run NULL).
INSERT OR REPLACE INTO run_summaries
SELECT * FROM v_run_summaries
WHERE run_id BETWEEN coalesce(:run, 0) AND coalesce(:run, 9223372036854775807)
