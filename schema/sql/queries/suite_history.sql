-- Returns the values of :metric in the newest :limit completed runs of suite :suite, the newest run first. Omits runs that have
-- no values of the metric, and runs that measured their own baseline. Columns: the run with its values, id, median.
SELECT json_object('run', id, 'at', utc_text(finished_ns), 'median', median, 'values', stored_json("values"), 'verdict', verdict,
                   'driver', driver, 'git_commit', git_commit, 'device_name', device_name, 'clock_setting', clock_setting), id,
  median
FROM (
  SELECT suite_run.*,
    (SELECT suite_verdict.verdict FROM suite_verdicts suite_verdict WHERE suite_verdict.suite_run_id = suite_run.id
      AND suite_verdict.metric = :metric) AS verdict,
    (SELECT json_group_array(value) FROM (
       SELECT value FROM suite_values suite_value WHERE suite_value.suite_run_id = suite_run.id AND suite_value.metric = :metric
         AND suite_value.role = 'block'
         AND suite_value.dropped_reason IS NULL AND suite_value.value IS NOT NULL ORDER BY suite_value.block)) AS "values",
    (SELECT avg(value) FROM (
       SELECT suite_value.value, row_number() OVER (ORDER BY suite_value.value) AS rank, count(*) OVER () AS value_count
       FROM suite_values suite_value WHERE suite_value.suite_run_id = suite_run.id AND suite_value.metric = :metric
         AND suite_value.role = 'block' AND suite_value.dropped_reason IS NULL
         AND suite_value.value IS NOT NULL) WHERE rank IN ((value_count + 1) / 2, (value_count + 2) / 2)) AS median
  FROM (SELECT id, finished_ns, driver, git_commit, device_name, clock_setting FROM suite_runs
        WHERE suite = :suite AND state = 'completed' AND against_request IS NULL ORDER BY id DESC LIMIT :limit) suite_run)
WHERE median IS NOT NULL
