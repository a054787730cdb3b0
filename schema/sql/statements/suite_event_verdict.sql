-- Adds an event about the verdict on :metric in suite run :run. json_patch drops members that are null.
INSERT INTO suite_events (suite_run_id, seq, at_ns, type, data)
SELECT suite_run.id, suite_run.events, :now, 'verdict', json_patch('{}', json_object('metric', suite_verdict.metric,
  'verdict', suite_verdict.verdict,
  'effect_ratio', suite_verdict.judgement ->> '$.effect_ratio', 'reason', suite_verdict.judgement ->> '$.reason'))
FROM suite_runs suite_run JOIN suite_verdicts suite_verdict ON suite_verdict.suite_run_id = suite_run.id
  WHERE suite_run.id = :run AND suite_verdict.metric = :metric
