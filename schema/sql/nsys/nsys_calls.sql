-- Adds the API calls. nsys has the calls of the runtime and of the driver API in one table.
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME (start, "end", eventClass, globalTid, correlationId, nameId, returnValue)
SELECT activity_row.start_ns, activity_row.start_ns + activity_row.duration_ns,
  activity_kinds.name = 'driver', iif(entry.thread > 0, entry.process << 24 | entry.thread, NULL),
  nullif(activity_row.correlation, 0), entry.name, 0
FROM temp.exported_pass exported_pass CROSS JOIN traces.activity_groups activity_group
  ON activity_group.pass_id = exported_pass.pass
  CROSS JOIN traces.activity_kinds activity_kinds ON activity_kinds.kind = activity_group.kind
  CROSS JOIN traces.activity activity_row ON activity_row.pass_id = activity_group.pass_id
    AND activity_row.activity_group = activity_group.activity_group
  CROSS JOIN traces.activity_dictionary entry ON entry.pass_id = activity_row.pass_id AND entry.entry = activity_row.entry
WHERE activity_kinds.name IN ('runtime', 'driver')
