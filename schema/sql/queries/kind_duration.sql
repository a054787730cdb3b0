-- Returns the newest completed job of kind :kind on :device. Columns: id of the job, its duration in s.
SELECT id, (finished_ns - started_ns) / 1e9 FROM jobs
WHERE kind = :kind AND state = 'completed' AND device = :device ORDER BY id DESC LIMIT 1
