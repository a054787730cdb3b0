-- :run. The activity pass of a run. Columns: state, reason, rows recorded, whether they are kept, records that were dropped, records
-- without times.
SELECT state, reason, activity_rows, activity_kept,
  (SELECT value FROM measurements WHERE pass_id = p.id AND name = 'activity_dropped_records'),
  (SELECT value FROM measurements WHERE pass_id = p.id AND name = 'activity_zero_time_records')
FROM passes p WHERE run_id = :run AND ordinal = 1
