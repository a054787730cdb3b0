-- Returns the rows of a pass, sorted by start; of rows that start together, the longest comes first.
SELECT activity_group.kind, activity_row.start_ns, activity_row.duration_ns, activity_row.correlation, activity_row.step,
  activity_row.entry
FROM activity_groups activity_group CROSS JOIN activity activity_row ON activity_row.pass_id = activity_group.pass_id
  AND activity_row.activity_group = activity_group.activity_group
WHERE activity_group.pass_id = :pass ORDER BY activity_row.start_ns, activity_row.duration_ns DESC, activity_row.ordinal
