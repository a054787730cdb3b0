-- Returns the oldest job that retention may delete.
SELECT id FROM jobs WHERE finished_ns < :before AND id NOT IN (SELECT job FROM v_needed_jobs) ORDER BY finished_ns LIMIT 1
