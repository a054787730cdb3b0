-- :run :level :from :to. The rows of a run that overlap a time window and are in no interval of a level; level -1: all rows. In
-- no particular order. Columns: '', kind, device, stream, thread, start, duration, ordinal of the name.
SELECT '', g.kind, d.device, d.stream, d.thread, a.start_ns, a.duration_ns, d.name
FROM passes p CROSS JOIN activity_groups g ON g.pass_id = p.id
  CROSS JOIN activity a ON a.pass_id = g.pass_id AND a.activity_group = g.activity_group
    AND a.start_ns >= :from - g.longest_ns AND a.start_ns < :to
    AND (a.start_ns + a.duration_ns > :from OR a.start_ns >= :from)
  CROSS JOIN activity_dictionary d ON d.pass_id = a.pass_id AND d.entry = a.entry
WHERE p.run_id = :run AND p.ordinal = 1 AND p.activity_kept = 1
  AND (g.first_level IS NULL OR g.first_level > :level OR g.activity_group / 16 % 32 > :level)
