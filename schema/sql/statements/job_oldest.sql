SELECT id FROM jobs WHERE finished_ns < :before ORDER BY finished_ns LIMIT 1
