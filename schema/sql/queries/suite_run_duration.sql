-- :suite :sha256 :device :measures_baseline. The mean duration of the newest three completed runs of a suite, in s. Columns: the number of runs, seconds.
SELECT count(*), avg(duration_s) FROM (
  SELECT (finished_ns - started_ns) / 1e9 AS duration_s FROM suite_runs
  WHERE suite = :suite AND device = :device AND state = 'completed' AND definition_sha256 = :sha256
    AND (against_request IS NOT NULL) = :measures_baseline ORDER BY id DESC LIMIT 3)
