SELECT id FROM jobs WHERE events_kept = 1 AND finished_ns < :before ORDER BY finished_ns LIMIT 1
