INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET (start, "end", deviceId, contextId, streamId, correlationId, globalPid, value, bytes,
  graphNodeId, memKind)
SELECT a.start_ns, a.start_ns + a.duration_ns, max(d.device - 1, 0), d.context, d.stream, nullif(a.correlation, 0), e.global_pid, 0,
  d.bytes, nullif(d.graph_node, 0), iif(d.destination_memory > 0, d.destination_memory - 1, 7)
FROM temp.exported_pass e CROSS JOIN traces.activity_groups g ON g.pass_id = e.pass
  CROSS JOIN traces.activity a ON a.pass_id = g.pass_id AND a.activity_group = g.activity_group
  CROSS JOIN traces.activity_dictionary d ON d.pass_id = a.pass_id AND d.entry = a.entry
WHERE g.kind = (SELECT kind FROM traces.activity_kinds WHERE name = 'memset')
