-- Returns the workload of run :run and its device. Columns: workload, parameters, the device's compute capability, number of
-- multiprocessors, bytes per second that a ceilings job read from its memory.
SELECT run.workload, run.params, device_row.properties ->> '$.compute_capability',
  device_row.properties ->> '$.sm_count',
  (SELECT ceiling.value FROM v_ceilings ceiling WHERE ceiling.device_identity = device_row.identity
    AND ceiling.driver IS device_row.driver AND ceiling.name = 'dram_read_bytes_per_s' LIMIT 1)
FROM runs run LEFT JOIN passes pass ON pass.run_id = run.id AND pass.ordinal = 1
  LEFT JOIN devices device_row ON device_row.id = pass.device_id
WHERE run.id = :run
