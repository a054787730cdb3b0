INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET (start, "end", deviceId, contextId, streamId, correlationId, globalPid, value, bytes,
  graphNodeId, memKind)
SELECT activity_row.start_ns, activity_row.start_ns + activity_row.duration_ns, max(entry.device - 1, 0), entry.context,
  entry.stream, nullif(activity_row.correlation, 0), exported_pass.global_pid, 0,
  entry.bytes, nullif(entry.graph_node, 0), iif(entry.destination_memory > 0, entry.destination_memory - 1, 7)
FROM temp.exported_pass exported_pass CROSS JOIN traces.activity_groups activity_group
  ON activity_group.pass_id = exported_pass.pass
  CROSS JOIN traces.activity activity_row ON activity_row.pass_id = activity_group.pass_id
    AND activity_row.activity_group = activity_group.activity_group
  CROSS JOIN traces.activity_dictionary entry ON entry.pass_id = activity_row.pass_id AND entry.entry = activity_row.entry
WHERE activity_group.kind = (SELECT kind FROM traces.activity_kinds WHERE name = 'memset')
