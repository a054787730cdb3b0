-- Returns the rows of run :run that overlap the window from :from to :to and are in no interval of the level :level (-1: all
-- rows), in no particular order. Columns: '', kind, device, stream, thread, start, duration, ordinal of the name.
SELECT '', activity_group.kind, entry.device, entry.stream, entry.thread, activity_row.start_ns, activity_row.duration_ns,
  entry.name
FROM passes pass CROSS JOIN activity_groups activity_group ON activity_group.pass_id = pass.id
  CROSS JOIN activity activity_row ON activity_row.pass_id = activity_group.pass_id
    AND activity_row.activity_group = activity_group.activity_group
    AND activity_row.start_ns >= :from - activity_group.longest_ns AND activity_row.start_ns < :to
    AND (activity_row.start_ns + activity_row.duration_ns > :from OR activity_row.start_ns >= :from)
  CROSS JOIN activity_dictionary entry ON entry.pass_id = activity_row.pass_id AND entry.entry = activity_row.entry
WHERE pass.run_id = :run AND pass.ordinal = 1 AND pass.activity_kept = 1
  -- activity_group / 16 % 32 is the class of the rows' durations; a class above :level is longer than the level's intervals.
  AND (activity_group.first_level IS NULL OR activity_group.first_level > :level
    OR activity_group.activity_group / 16 % 32 > :level)
