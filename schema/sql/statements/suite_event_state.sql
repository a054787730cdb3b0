-- Adds an event about the state of suite run :run. json_patch drops members that are null.
INSERT INTO suite_events (suite_run_id, seq, at_ns, type, data)
SELECT id, events, :now, 'state', json_patch('{}', json_object('state', state, 'verdict', verdict, 'reason', reason,
  'quarantine_reason', quarantine_reason))
FROM suite_runs WHERE id = :run
