-- Stores the likely cause of the times of pass :pass that are below their floor, and what to do. Either the time is wrong, or the
-- ceilings are too low because other processes used the device while they were measured. That no such use is known does not
-- exclude it, so the result is not named as the likely cause.
UPDATE passes SET suspect_cause = (
  SELECT CASE shared
    WHEN 1 THEN printf('Likely cause: the ceilings of job %d are too low, because %s. Measure the ceilings again while nothing else '
      || 'runs (rooflinectl run --kind ceilings --device %s), then run this job again.', job, device_use, device)
    WHEN 0 THEN printf('Check that the run does all of its work, and that its time includes all of it. Job %d measured the ceilings, '
      || 'and %s.', job, device_use)
    ELSE printf('Check that the run does all of its work, and that its time includes all of it. It is unknown whether other '
      || 'processes used the device while job %d measured the ceilings.', job) END
  FROM v_other_processes WHERE v_other_processes.pass_id = passes.ceilings_id)
WHERE id = :pass AND (
  EXISTS (SELECT 1 FROM epochs WHERE pass_id = :pass AND suspect = 1 AND suspect_reason GLOB '* is faster than its floor of *')
  OR EXISTS (
    SELECT 1 FROM samples WHERE pass_id = :pass AND suspect = 1 AND suspect_reason GLOB '* is faster than its floor of *'))
