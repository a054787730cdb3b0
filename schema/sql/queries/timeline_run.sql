-- Returns the workload of run :run and its device. Columns: workload, parameters, the device's compute capability, number of
-- multiprocessors, bytes per second that a ceilings job read from its memory: of the ceilings from which the floors of the run follow.
SELECT run.workload, run.params, device_row.properties ->> '$.compute_capability', device_row.properties ->> '$.sm_count',
  (SELECT measurement.value FROM passes timing CROSS JOIN measurements measurement ON measurement.pass_id = timing.ceilings_id
   WHERE timing.run_id = run.id AND timing.ordinal = 0 AND measurement.name = 'dram_read_bytes_per_s')
FROM runs run LEFT JOIN passes pass ON pass.run_id = run.id AND pass.ordinal = 1
  LEFT JOIN devices device_row ON device_row.id = pass.device_id
WHERE run.id = :run
