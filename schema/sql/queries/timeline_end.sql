-- Returns the time at which the last row of run :run's trace ends. Columns: '', time in ns. Of each group, reads only the rows
-- that can end last: those that start at most longest_ns before the last start.
SELECT '', coalesce(max((
  SELECT max(activity_row.start_ns + activity_row.duration_ns) FROM activity activity_row
  WHERE activity_row.pass_id = activity_group.pass_id AND activity_row.activity_group = activity_group.activity_group
    AND activity_row.start_ns >= (
    SELECT max(last_row.start_ns) FROM activity last_row WHERE last_row.pass_id = activity_group.pass_id
      AND last_row.activity_group = activity_group.activity_group) - activity_group.longest_ns)), 0)
FROM passes pass JOIN activity_groups activity_group ON activity_group.pass_id = pass.id
WHERE pass.run_id = :run AND pass.ordinal = 1 AND pass.activity_kept = 1
