-- Returns a row if the daemon should measure the ceilings of the pass's device again. All of these conditions must hold: the
-- timing pass has found no ceilings with the device's current driver and clocks; the device has older ceilings; no ceilings job
-- of the device is queued or running; and the daemon has submitted no ceilings job since the device last reported the driver and
-- clocks of the older ceilings.
SELECT job.device
FROM passes pass JOIN jobs job ON job.id = pass.job_id
  JOIN passes np ON np.id = (
    SELECT cp.id FROM runs cr CROSS JOIN passes cp ON cp.run_id = cr.id AND cp.ordinal = 0 AND cp.state = 'completed'
      CROSS JOIN jobs cj ON cj.id = cr.job_id
    WHERE cr.workload = 'ceilings' AND cj.device = job.device ORDER BY cr.id DESC LIMIT 1)
  JOIN devices before ON before.id = np.device_id
WHERE pass.id = :pass AND pass.ordinal = 0 AND pass.device_id IS NOT NULL AND pass.ceilings_id IS NULL AND job.kind <> 'ceilings'
  AND NOT EXISTS (
    SELECT 1 FROM runs ar CROSS JOIN jobs aj ON aj.id = ar.job_id
    WHERE ar.workload = 'ceilings' AND aj.device = job.device
      AND (aj.state IN ('queued', 'running', 'interrupted') OR (aj.origin = 'daemon' AND aj.created_ns > before.last_ns)))
