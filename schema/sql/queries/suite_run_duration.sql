-- Returns the mean duration of the newest three completed runs of suite :suite with the definition :sha256 on :device that
-- measured their own baseline (:measures_baseline 1) or did not (0). Columns: number of runs, duration in s.
SELECT count(*), avg(duration_s) FROM (
  SELECT (finished_ns - started_ns) / 1e9 AS duration_s FROM suite_runs
  WHERE suite = :suite AND device = :device AND state = 'completed' AND definition_sha256 = :sha256
    AND (against_request IS NOT NULL) = :measures_baseline ORDER BY id DESC LIMIT 3)
