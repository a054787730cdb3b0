-- Returns the activity pass of run :run. Columns: state, reason, number of recorded rows, whether the rows are kept, number of
-- dropped records, number of records without times.
SELECT state, reason, activity_rows, activity_kept,
  (SELECT value FROM measurements WHERE pass_id = pass.id AND name = 'activity_dropped_records'),
  (SELECT value FROM measurements WHERE pass_id = pass.id AND name = 'activity_zero_time_records')
FROM passes pass WHERE run_id = :run AND ordinal = 1
