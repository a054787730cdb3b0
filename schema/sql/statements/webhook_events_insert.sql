-- :run :now. Stores the events of a suite run that has just ended: the metrics that became slower, and those that were slower and
-- are not any more. Each verdict is compared with the newest decided verdict under the same conditions in the last 100 runs. No
-- events for runs against a baseline of `rooflinectl bisect`, which search a known regression, nor for runs that measure their
-- own baseline.
WITH
  earlier AS MATERIALIZED (
    SELECT p.id, p.jobs_sha256 FROM suite_runs r JOIN suite_runs p ON p.suite = r.suite AND p.device = r.device
    WHERE r.id = :run AND p.state = 'completed' AND p.id < r.id AND p.against IS r.against AND p.device_name IS r.device_name
      AND p.driver IS r.driver AND p.clock_setting IS r.clock_setting AND p.against_request IS NULL
    ORDER BY p.id DESC LIMIT 100),
  judged AS MATERIALIZED (
    SELECT v.metric, v.verdict, v.judgement, v.causes, r.jobs_sha256,
      '$."' || substr(v.metric, 1, instr(v.metric, '/') - 1) || '"' AS job
    FROM suite_runs r JOIN suite_verdicts v ON v.suite_run_id = r.id
    WHERE r.id = :run AND v.verdict IN ('slower', 'same', 'faster') AND coalesce(r.against, '') NOT GLOB 'bisect-*'
      AND r.against_request IS NULL),
  changed AS (
    SELECT iif(verdict = 'slower', 'regression.confirmed', 'regression.fixed') AS type, * FROM judged
    WHERE (verdict = 'slower') <> coalesce((
      SELECT v.verdict = 'slower'
      FROM earlier CROSS JOIN suite_verdicts v ON v.suite_run_id = earlier.id AND v.metric = judged.metric
      WHERE v.verdict IN ('slower', 'same', 'faster') AND earlier.jobs_sha256 ->> job IS judged.jobs_sha256 ->> job
      ORDER BY earlier.id DESC LIMIT 1), 0)),
  ranked AS MATERIALIZED (
    SELECT type, row_number() OVER (PARTITION BY type ORDER BY abs(judgement ->> '$.effect_ratio') DESC, metric) AS place,
      json_object(
        'metric', metric, 'verdict', verdict, 'reason', judgement -> '$.reason', 'direction', judgement -> '$.direction',
        'threshold_ratio', judgement -> '$.threshold_ratio', 'baseline_median', judgement -> '$.baseline_median',
        'current_median', judgement -> '$.current_median', 'effect_ratio', judgement -> '$.effect_ratio',
        'interval_ratio', judgement -> '$.interval_ratio',
        'causes', json((SELECT json_group_array(json(value)) FROM (SELECT value FROM json_each(causes) LIMIT 3)))) AS item
    FROM changed ORDER BY type, place)
INSERT INTO webhook_events (event_id, suite_run_id, type, body, created_ns, next_attempt_ns)
SELECT 'msg_' || lower(hex(randomblob(16))), r.id, type,
  json_object('type', type, 'timestamp', utc_text(:now), 'data', json_object(
    'suite', r.suite, 'suite_run', r.id, 'path', '/suite-runs/' || r.id, 'device', r.device, 'device_name', r.device_name,
    'driver', r.driver, 'clock_setting', r.clock_setting, 'git_commit', r.git_commit, 'against', r.against,
    'metric_count', count(*), 'metrics', json_group_array(json(item)) FILTER (WHERE place <= 20))),
  :now, :now
FROM ranked JOIN suite_runs r ON r.id = :run GROUP BY type
