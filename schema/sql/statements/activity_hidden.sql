-- Returns a pass whose stored activity rows no query returns, because the pass has failed or retention is deleting its rows.
-- Excludes running passes, whose rows are not committed yet.
SELECT id FROM passes WHERE id > 0 AND activity_stored = 1 AND activity_kept = 0 AND state <> 'running' LIMIT 1
