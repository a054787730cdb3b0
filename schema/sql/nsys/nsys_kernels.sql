INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, "end", deviceId, contextId, streamId, correlationId, globalPid, demangledName,
  shortName, registersPerThread, gridX, gridY, gridZ, blockX, blockY, blockZ, staticSharedMemory, dynamicSharedMemory,
  localMemoryPerThread, localMemoryTotal, gridId, graphNodeId)
SELECT a.start_ns, a.start_ns + a.duration_ns, max(d.device - 1, 0), d.context, d.stream, nullif(a.correlation, 0), e.global_pid,
  d.name, coalesce(s.id, d.name), d.registers, d.grid_x, d.grid_y, d.grid_z, d.block_x, d.block_y, d.block_z,
  d.static_shared_bytes, d.dynamic_shared_bytes, 0, 0, a.ordinal, nullif(d.graph_node, 0)
FROM temp.exported_pass e CROSS JOIN traces.activity_groups g ON g.pass_id = e.pass
  CROSS JOIN traces.activity a ON a.pass_id = g.pass_id AND a.activity_group = g.activity_group
  CROSS JOIN traces.activity_dictionary d ON d.pass_id = a.pass_id AND d.entry = a.entry
  LEFT JOIN temp.short_names s ON s.name = d.name
WHERE g.kind = (SELECT kind FROM traces.activity_kinds WHERE name = 'kernel')
