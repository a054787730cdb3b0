-- Returns the activity pass of run :run. Columns: why it has no numbers ('': it is completed), number of recorded rows, whether the
-- rows are kept, number of dropped records, number of records without times.
SELECT coalesce(missing.reason, ''), pass.activity_rows, pass.activity_kept,
  (SELECT value FROM measurements WHERE pass_id = pass.id AND name = 'activity_dropped_records'),
  (SELECT value FROM measurements WHERE pass_id = pass.id AND name = 'activity_zero_time_records')
FROM v_pass_reasons missing LEFT JOIN passes pass ON pass.run_id = missing.run AND pass.ordinal = missing.ordinal
WHERE missing.run = :run AND missing.ordinal = 1
