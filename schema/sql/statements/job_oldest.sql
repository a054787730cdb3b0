-- Returns the oldest job that retention may delete.
SELECT id FROM jobs WHERE finished_ns < :before AND NOT EXISTS (SELECT 1 FROM v_needed_jobs WHERE job = jobs.id)
ORDER BY finished_ns LIMIT 1
