-- Returns the devices of all jobs, in order. Looks each one up in an index, so the steps don't grow with the jobs of a device.
WITH RECURSIVE found(device) AS (
  SELECT min(device) FROM jobs
  UNION ALL SELECT (SELECT min(device) FROM jobs WHERE device > found.device) FROM found WHERE found.device IS NOT NULL)
SELECT device FROM found WHERE device IS NOT NULL
