INSERT INTO PROFILER_OVERHEAD (start, "end", globalTid, correlationId, nameId, returnValue)
SELECT activity_row.start_ns, activity_row.start_ns + activity_row.duration_ns, iif(entry.thread > 0,
  entry.process << 24 | entry.thread, NULL), nullif(activity_row.correlation, 0), entry.name, 0
FROM temp.exported_pass exported_pass CROSS JOIN traces.activity_groups activity_group
  ON activity_group.pass_id = exported_pass.pass
  CROSS JOIN traces.activity activity_row ON activity_row.pass_id = activity_group.pass_id
    AND activity_row.activity_group = activity_group.activity_group
  CROSS JOIN traces.activity_dictionary entry ON entry.pass_id = activity_row.pass_id AND entry.entry = activity_row.entry
WHERE activity_group.kind = (SELECT kind FROM traces.activity_kinds WHERE name = 'overhead')
