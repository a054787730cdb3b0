-- Returns the suite run that retention may delete next: the oldest one that failed or was cancelled or, if there is none, the
-- oldest completed one.
SELECT id FROM (
  SELECT * FROM (
    SELECT id, finished_ns, 0 AS is_completed FROM suite_runs WHERE state = 'failed' AND finished_ns < :before
      AND NOT EXISTS (SELECT 1 FROM v_needed_suite_runs WHERE suite_run = suite_runs.id) ORDER BY finished_ns LIMIT 1)
  UNION ALL SELECT * FROM (
    SELECT id, finished_ns, 0 FROM suite_runs WHERE state = 'cancelled' AND finished_ns < :before
      AND NOT EXISTS (SELECT 1 FROM v_needed_suite_runs WHERE suite_run = suite_runs.id) ORDER BY finished_ns LIMIT 1)
  UNION ALL SELECT * FROM (
    SELECT id, finished_ns, 1 FROM suite_runs WHERE state = 'completed' AND finished_ns < :before
      AND NOT EXISTS (SELECT 1 FROM v_needed_suite_runs WHERE suite_run = suite_runs.id) ORDER BY finished_ns LIMIT 1))
ORDER BY is_completed, finished_ns LIMIT 1
