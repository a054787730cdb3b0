-- Returns the suite run that retention may delete next: the oldest one that failed or was cancelled or, if there is none, the
-- oldest completed one.
SELECT id FROM suite_runs
WHERE state IN ('failed', 'cancelled', 'completed') AND finished_ns < :before
  AND NOT EXISTS (SELECT 1 FROM v_needed_suite_runs WHERE suite_run = suite_runs.id)
ORDER BY state = 'completed', finished_ns LIMIT 1
