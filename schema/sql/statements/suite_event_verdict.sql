-- :run :metric :now. json_patch drops members that are null.
INSERT INTO suite_events (suite_run_id, seq, at_ns, type, data)
SELECT r.id, r.events, :now, 'verdict', json_patch('{}', json_object('metric', v.metric, 'verdict', v.verdict,
  'effect_ratio', v.judgement ->> '$.effect_ratio', 'reason', v.judgement ->> '$.reason'))
FROM suite_runs r JOIN suite_verdicts v ON v.suite_run_id = r.id WHERE r.id = :run AND v.metric = :metric
