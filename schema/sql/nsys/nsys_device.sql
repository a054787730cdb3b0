INSERT INTO TARGET_INFO_GPU (vmId, id, name, busLocation, isDiscrete, l2CacheSize, totalMemory, clockRate, smCount, uuid,
  cuDevice,
  maxShmemPerSm, maxRegistersPerSm, threadsPerWarp, computeMajor, computeMinor, smMajor, smMinor)
SELECT 0, exported_pass.device, device_row.properties ->> '$.name', device_row.properties ->> '$.pci_bus', NULL,
  device_row.properties ->> '$.l2_bytes',
  device_row.properties ->> '$.memory_bytes', (device_row.properties ->> '$.sm_clock_max_khz') * 1000,
    device_row.properties ->> '$.sm_count',
  device_row.properties ->> '$.uuid', exported_pass.device, device_row.properties ->> '$.shared_memory_per_sm_bytes', device_row.properties ->> '$.registers_per_sm', 32,
  CAST(device_row.properties ->> '$.compute_capability' AS INTEGER),
  CAST(substr(device_row.properties ->> '$.compute_capability', instr(device_row.properties ->> '$.compute_capability', '.') + 1) AS INTEGER),
  CAST(device_row.properties ->> '$.compute_capability' AS INTEGER),
  CAST(substr(device_row.properties ->> '$.compute_capability', instr(device_row.properties ->> '$.compute_capability', '.') + 1) AS INTEGER)
FROM temp.exported_pass exported_pass JOIN traces.passes pass ON pass.id = exported_pass.pass JOIN traces.devices device_row
  ON device_row.id = pass.device_id
WHERE device_row.properties ->> '$.compute_capability' IS NOT NULL
