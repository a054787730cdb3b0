SELECT id FROM passes WHERE activity_kept = 1 AND finished_ns < :before ORDER BY finished_ns LIMIT 1
