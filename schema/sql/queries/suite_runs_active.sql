-- Returns the suite runs that have not ended, the oldest first. Columns: state, id, device.
SELECT state, id, device FROM suite_runs WHERE state IN ('queued', 'running') ORDER BY id
