INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, "end", deviceId, contextId, streamId, correlationId, globalPid, demangledName,
  shortName, registersPerThread, gridX, gridY, gridZ, blockX, blockY, blockZ, staticSharedMemory, dynamicSharedMemory,
  localMemoryPerThread, localMemoryTotal, gridId, graphNodeId)
SELECT activity_row.start_ns, activity_row.start_ns + activity_row.duration_ns, max(entry.device - 1, 0), entry.context,
  entry.stream, nullif(activity_row.correlation, 0), exported_pass.global_pid,
  entry.name, coalesce(short_names.id, entry.name), entry.registers, entry.grid_x, entry.grid_y, entry.grid_z, entry.block_x,
    entry.block_y, entry.block_z,
  entry.static_shared_bytes, entry.dynamic_shared_bytes, 0, 0, activity_row.ordinal, nullif(entry.graph_node, 0)
FROM temp.exported_pass exported_pass CROSS JOIN traces.activity_groups activity_group
  ON activity_group.pass_id = exported_pass.pass
  CROSS JOIN traces.activity activity_row ON activity_row.pass_id = activity_group.pass_id
    AND activity_row.activity_group = activity_group.activity_group
  CROSS JOIN traces.activity_dictionary entry ON entry.pass_id = activity_row.pass_id AND entry.entry = activity_row.entry
  LEFT JOIN temp.short_names short_names ON short_names.name = entry.name
WHERE activity_group.kind = (SELECT kind FROM traces.activity_kinds WHERE name = 'kernel')
