-- Adds the copies. The numbers of kinds of copies and of memory are those of ENUM_CUDA_MEMCPY_OPER and ENUM_CUDA_MEM_KIND.
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY (start, "end", deviceId, contextId, streamId, correlationId, globalPid, bytes, copyKind,
  srcKind, dstKind, graphNodeId)
SELECT activity_row.start_ns, activity_row.start_ns + activity_row.duration_ns, max(entry.device - 1, 0), entry.context,
  entry.stream, nullif(activity_row.correlation, 0), exported_pass.global_pid,
  entry.bytes,
  CASE string_id.value WHEN 'memcpy HtoD' THEN 1 WHEN 'memcpy DtoH' THEN 2 WHEN 'memcpy HtoA' THEN 3 WHEN 'memcpy AtoH' THEN 4
    WHEN 'memcpy AtoA' THEN 5 WHEN 'memcpy AtoD' THEN 6 WHEN 'memcpy DtoA' THEN 7 WHEN 'memcpy DtoD' THEN 8
    WHEN 'memcpy HtoH' THEN 9 WHEN 'memcpy PtoP' THEN 10 ELSE 0 END,
  iif(entry.source_memory > 0, entry.source_memory - 1, 7), iif(entry.destination_memory > 0, entry.destination_memory - 1, 7),
  nullif(entry.graph_node, 0)
FROM temp.exported_pass exported_pass CROSS JOIN traces.activity_groups activity_group
  ON activity_group.pass_id = exported_pass.pass
  CROSS JOIN traces.activity activity_row ON activity_row.pass_id = activity_group.pass_id
    AND activity_row.activity_group = activity_group.activity_group
  CROSS JOIN traces.activity_dictionary entry ON entry.pass_id = activity_row.pass_id AND entry.entry = activity_row.entry
  CROSS JOIN StringIds string_id ON string_id.id = entry.name
WHERE activity_group.kind = (SELECT kind FROM traces.activity_kinds WHERE name = 'memcpy')
