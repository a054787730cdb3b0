INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY (start, "end", deviceId, contextId, streamId, correlationId, globalPid, bytes, copyKind,
  srcKind, dstKind, graphNodeId)
SELECT a.start_ns, a.start_ns + a.duration_ns, max(d.device - 1, 0), d.context, d.stream, nullif(a.correlation, 0), e.global_pid,
  d.bytes,
  CASE n.value WHEN 'memcpy HtoD' THEN 1 WHEN 'memcpy DtoH' THEN 2 WHEN 'memcpy HtoA' THEN 3 WHEN 'memcpy AtoH' THEN 4
    WHEN 'memcpy AtoA' THEN 5 WHEN 'memcpy AtoD' THEN 6 WHEN 'memcpy DtoA' THEN 7 WHEN 'memcpy DtoD' THEN 8
    WHEN 'memcpy HtoH' THEN 9 WHEN 'memcpy PtoP' THEN 10 ELSE 0 END,
  iif(d.source_memory > 0, d.source_memory - 1, 7), iif(d.destination_memory > 0, d.destination_memory - 1, 7),
  nullif(d.graph_node, 0)
FROM temp.exported_pass e CROSS JOIN traces.activity_groups g ON g.pass_id = e.pass
  CROSS JOIN traces.activity a ON a.pass_id = g.pass_id AND a.activity_group = g.activity_group
  CROSS JOIN traces.activity_dictionary d ON d.pass_id = a.pass_id AND d.entry = a.entry
  CROSS JOIN StringIds n ON n.id = d.name
WHERE g.kind = (SELECT kind FROM traces.activity_kinds WHERE name = 'memcpy')
