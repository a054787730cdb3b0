-- Returns a row if the daemon should measure the ceilings of the pass's device again. All of these conditions must hold: the
-- timing pass has found no ceilings with the device's current driver and clocks; the device has older ceilings; no ceilings job
-- of the device is queued or running; and the daemon has submitted no ceilings job since the device last reported the driver and
-- clocks of the older ceilings.
SELECT job.device
FROM passes pass JOIN jobs job ON job.id = pass.job_id
  JOIN passes newest_pass ON newest_pass.id = (
    SELECT ceilings_pass.id
    FROM runs ceilings_run CROSS JOIN passes ceilings_pass ON ceilings_pass.run_id = ceilings_run.id
        AND ceilings_pass.ordinal = 0 AND ceilings_pass.state = 'completed'
      CROSS JOIN jobs ceilings_job ON ceilings_job.id = ceilings_run.job_id
    WHERE ceilings_run.workload = 'ceilings' AND ceilings_job.device = job.device ORDER BY ceilings_run.id DESC LIMIT 1)
  JOIN devices measured_device ON measured_device.id = newest_pass.device_id
WHERE pass.id = :pass AND pass.ordinal = 0 AND pass.device_id IS NOT NULL AND pass.ceilings_id IS NULL AND job.kind <> 'ceilings'
  AND NOT EXISTS (
    SELECT 1 FROM runs other_run CROSS JOIN jobs other_job ON other_job.id = other_run.job_id
    WHERE other_run.workload = 'ceilings' AND other_job.device = job.device
      AND (other_job.state IN ('queued', 'running', 'interrupted')
        OR (other_job.origin = 'daemon' AND other_job.created_ns > measured_device.last_ns)))
