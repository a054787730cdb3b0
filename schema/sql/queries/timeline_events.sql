-- Returns the operations, API calls, NVTX ranges and overheads in the trace of run :run, if its rows are kept, in no particular
-- order. Does not join the entries, because looking them up would take longer than the rest of the query. Columns: '', start,
-- duration, kind, correlation, entry (timeline_values.sql).
SELECT '', activity_row.start_ns, activity_row.duration_ns, activity_group.kind, activity_row.correlation, activity_row.entry
FROM passes pass CROSS JOIN activity_groups activity_group ON activity_group.pass_id = pass.id
  CROSS JOIN activity activity_row ON activity_row.pass_id = activity_group.pass_id
    AND activity_row.activity_group = activity_group.activity_group
WHERE pass.run_id = :run AND pass.ordinal = 1 AND pass.activity_kept = 1
  AND activity_group.kind IN (SELECT kind FROM activity_kinds
                 WHERE name IN ('kernel', 'memcpy', 'memset', 'runtime', 'driver', 'range', 'overhead', 'span'))
