INSERT INTO TARGET_INFO_GPU (vmId, id, name, busLocation, isDiscrete, l2CacheSize, totalMemory, clockRate, smCount, uuid, cuDevice,
  maxShmemPerSm, maxRegistersPerSm, threadsPerWarp, computeMajor, computeMinor, smMajor, smMinor)
SELECT 0, e.device, d.properties ->> '$.name', d.properties ->> '$.pci_bus', NULL, d.properties ->> '$.l2_bytes',
  d.properties ->> '$.memory_bytes', (d.properties ->> '$.sm_clock_max_khz') * 1000, d.properties ->> '$.sm_count',
  d.properties ->> '$.uuid', e.device, d.properties ->> '$.shared_memory_per_sm_bytes', d.properties ->> '$.registers_per_sm', 32,
  CAST(d.properties ->> '$.compute_capability' AS INTEGER),
  CAST(substr(d.properties ->> '$.compute_capability', instr(d.properties ->> '$.compute_capability', '.') + 1) AS INTEGER),
  CAST(d.properties ->> '$.compute_capability' AS INTEGER),
  CAST(substr(d.properties ->> '$.compute_capability', instr(d.properties ->> '$.compute_capability', '.') + 1) AS INTEGER)
FROM temp.exported_pass e JOIN traces.passes p ON p.id = e.pass JOIN traces.devices d ON d.id = p.device_id
WHERE d.properties ->> '$.compute_capability' IS NOT NULL
