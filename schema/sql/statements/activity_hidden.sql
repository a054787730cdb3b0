-- A pass that failed, or whose rows retention deletes. The rows of a running pass are not committed yet.
SELECT id FROM passes WHERE id > 0 AND activity_stored = 1 AND activity_kept = 0 AND state <> 'running' LIMIT 1
