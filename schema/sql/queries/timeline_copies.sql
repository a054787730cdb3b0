-- :run. The copies in the trace of a run by direction and kinds of memory. Columns: name, source, destination, number, bytes, sum of
-- the durations in ns, then bytes and durations of the copies of 1 MiB or more.
SELECT n.name, d.source_memory, d.destination_memory, count(*), sum(d.bytes), sum(a.duration_ns),
  sum(iif(d.bytes >= 1048576, d.bytes, 0)), sum(iif(d.bytes >= 1048576, a.duration_ns, 0))
FROM passes p CROSS JOIN activity_groups g ON g.pass_id = p.id
  CROSS JOIN activity a ON a.pass_id = g.pass_id AND a.activity_group = g.activity_group
  CROSS JOIN activity_dictionary d ON d.pass_id = a.pass_id AND d.entry = a.entry
  CROSS JOIN names n ON n.pass_id = d.pass_id AND n.ordinal = d.name
WHERE p.run_id = :run AND p.ordinal = 1 AND p.activity_kept = 1
  AND g.kind = (SELECT kind FROM activity_kinds WHERE name = 'memcpy')
GROUP BY n.name, d.source_memory, d.destination_memory
