-- The suite runs that have not ended, oldest first. Columns: state, id, device.
SELECT state, id, device FROM suite_runs WHERE state IN ('queued', 'running') ORDER BY id
