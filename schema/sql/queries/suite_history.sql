-- :suite :metric :limit. The newest completed runs of a suite with values of the metric, newest first; without runs that measured
-- their own baseline. Columns: run with its values, id, median.
SELECT json_object('run', id, 'at', utc_text(finished_ns), 'median', median, 'values', stored_json("values"), 'verdict', verdict,
                   'driver', driver, 'git_commit', git_commit, 'device_name', device_name, 'clock_setting', clock_setting), id,
  median
FROM (
  SELECT r.*,
    (SELECT v.verdict FROM suite_verdicts v WHERE v.suite_run_id = r.id AND v.metric = :metric) AS verdict,
    (SELECT json_group_array(value) FROM (
       SELECT value FROM suite_values v WHERE v.suite_run_id = r.id AND v.metric = :metric AND v.role = 'block'
         AND v.dropped_reason IS NULL AND v.value IS NOT NULL ORDER BY v.block)) AS "values",
    (SELECT avg(value) FROM (
       SELECT v.value, row_number() OVER (ORDER BY v.value) AS rank, count(*) OVER () AS n
       FROM suite_values v WHERE v.suite_run_id = r.id AND v.metric = :metric AND v.role = 'block' AND v.dropped_reason IS NULL
         AND v.value IS NOT NULL) WHERE rank IN ((n + 1) / 2, (n + 2) / 2)) AS median
  FROM (SELECT id, finished_ns, driver, git_commit, device_name, clock_setting FROM suite_runs
        WHERE suite = :suite AND state = 'completed' AND against_request IS NULL ORDER BY id DESC LIMIT :limit) r)
WHERE median IS NOT NULL
