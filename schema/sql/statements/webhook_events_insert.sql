-- Stores the webhook events of suite run :run, which has just ended: one event for the metrics that have become slower, and one
-- event for the metrics that were slower and are not slower any more. Compares each verdict with the newest verdict (slower, same
-- or faster) of the same metric under the same conditions in the last 100 runs. Stores no events for runs against a baseline of
-- `rooflinectl bisect`, because they search a known regression, and none for runs that measure their own baseline.
WITH
  earlier AS MATERIALIZED (
    SELECT earlier_run.id, earlier_run.jobs_sha256 FROM suite_runs suite_run JOIN suite_runs earlier_run
      ON earlier_run.suite = suite_run.suite AND earlier_run.device = suite_run.device
    WHERE suite_run.id = :run AND earlier_run.state = 'completed' AND earlier_run.id < suite_run.id
      AND earlier_run.against IS suite_run.against AND earlier_run.device_name IS suite_run.device_name
      AND earlier_run.driver IS suite_run.driver AND earlier_run.clock_setting IS suite_run.clock_setting
        AND earlier_run.against_request IS NULL
    ORDER BY earlier_run.id DESC LIMIT 100),
  judged AS MATERIALIZED (
    SELECT suite_verdict.metric, suite_verdict.verdict, suite_verdict.judgement, suite_verdict.causes, suite_run.jobs_sha256,
      '$."' || substr(suite_verdict.metric, 1, instr(suite_verdict.metric, '/') - 1) || '"' AS job
    FROM suite_runs suite_run JOIN suite_verdicts suite_verdict ON suite_verdict.suite_run_id = suite_run.id
    WHERE suite_run.id = :run AND suite_verdict.verdict IN ('slower', 'same', 'faster') AND coalesce(suite_run.against,
      '') NOT GLOB 'bisect-*'
      AND suite_run.against_request IS NULL),
  changed AS (
    SELECT iif(verdict = 'slower', 'regression.confirmed', 'regression.fixed') AS type, * FROM judged
    WHERE (verdict = 'slower') <> coalesce((
      SELECT suite_verdict.verdict = 'slower'
      FROM earlier CROSS JOIN suite_verdicts suite_verdict ON suite_verdict.suite_run_id = earlier.id
        AND suite_verdict.metric = judged.metric
      WHERE suite_verdict.verdict IN ('slower', 'same', 'faster') AND earlier.jobs_sha256 ->> job IS judged.jobs_sha256 ->> job
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
SELECT 'msg_' || lower(hex(randomblob(16))), suite_run.id, type,
  json_object('type', type, 'timestamp', utc_text(:now), 'data', json_object(
    'suite', suite_run.suite, 'suite_run', suite_run.id, 'path', '/suite-runs/' || suite_run.id, 'device', suite_run.device,
      'device_name', suite_run.device_name,
    'driver', suite_run.driver, 'clock_setting', suite_run.clock_setting, 'git_commit', suite_run.git_commit,
      'against', suite_run.against,
    'metric_count', count(*), 'metrics', json_group_array(json(item)) FILTER (WHERE place <= 20))),
  :now, :now
FROM ranked JOIN suite_runs suite_run ON suite_run.id = :run GROUP BY type
