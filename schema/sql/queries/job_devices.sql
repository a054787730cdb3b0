-- Returns the devices of all jobs, sorted. Searches the index for the next device, so the time does not depend on the number of
-- jobs of a device.
WITH RECURSIVE found(device) AS (
  SELECT min(device) FROM jobs
  UNION ALL SELECT (SELECT min(device) FROM jobs WHERE device > found.device) FROM found WHERE found.device IS NOT NULL)
SELECT device FROM found WHERE device IS NOT NULL
