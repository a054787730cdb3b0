-- Returns the copies in the trace of run :run, grouped by direction and kinds of memory. Columns: name, kind of the source
-- memory, kind of the destination memory; for all copies of the group: their number, bytes and total duration in ns; for the
-- copies of :large bytes or more: bytes and total duration in ns; number of copies whose bytes are unknown.
SELECT name_row.name, entry.source_memory, entry.destination_memory, count(*), sum(entry.bytes), sum(activity_row.duration_ns),
  sum(iif(entry.bytes >= :large, entry.bytes, 0)), sum(iif(entry.bytes >= :large, activity_row.duration_ns, 0)),
  sum(entry.unknown_values & 8 <> 0)
FROM passes pass CROSS JOIN activity_groups activity_group ON activity_group.pass_id = pass.id
  CROSS JOIN activity activity_row ON activity_row.pass_id = activity_group.pass_id
    AND activity_row.activity_group = activity_group.activity_group
  CROSS JOIN activity_dictionary entry ON entry.pass_id = activity_row.pass_id AND entry.entry = activity_row.entry
  CROSS JOIN names name_row ON name_row.pass_id = entry.pass_id AND name_row.ordinal = entry.name
WHERE pass.run_id = :run AND pass.ordinal = 1 AND pass.activity_kept = 1
  AND activity_group.kind = (SELECT kind FROM activity_kinds WHERE name = 'memcpy')
GROUP BY name_row.name, entry.source_memory, entry.destination_memory
