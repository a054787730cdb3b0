-- Adds the NVTX ranges of the domain rooflined as events of type 59 (push and pop). On a CPU each launch is inside a range that
-- has its name and times.
INSERT INTO NVTX_EVENTS (start, "end", eventType, text, globalTid, domainId)
SELECT activity_row.start_ns, activity_row.start_ns + activity_row.duration_ns, 59, string_id.value, iif(entry.thread > 0,
  entry.process << 24 | entry.thread, NULL), 1
FROM temp.exported_pass exported_pass CROSS JOIN traces.activity_groups activity_group
  ON activity_group.pass_id = exported_pass.pass
  CROSS JOIN traces.activity activity_row ON activity_row.pass_id = activity_group.pass_id
    AND activity_row.activity_group = activity_group.activity_group
  CROSS JOIN traces.activity_dictionary entry ON entry.pass_id = activity_row.pass_id AND entry.entry = activity_row.entry
  CROSS JOIN StringIds string_id ON string_id.id = entry.name
WHERE activity_group.kind IN (SELECT kind FROM traces.activity_kinds WHERE name IN ('range', 'span'))
