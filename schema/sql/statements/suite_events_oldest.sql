SELECT id FROM suite_runs WHERE events_kept = 1 AND finished_ns < :before ORDER BY finished_ns LIMIT 1
