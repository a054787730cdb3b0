-- Returns the id of a pass whose activity rows are stored but hidden from queries, because the pass was not committed or
-- retention is deleting its rows. Excludes running passes, whose rows become visible with their commit.
SELECT id FROM passes WHERE id > 0 AND activity_stored = 1 AND activity_kept = 0 AND state <> 'running' LIMIT 1
