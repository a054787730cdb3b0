-- :kind :device. The duration of the newest completed job of a kind. Columns: the job, seconds.
SELECT id, (finished_ns - started_ns) / 1e9 FROM jobs
WHERE kind = :kind AND state = 'completed' AND device = :device ORDER BY id DESC LIMIT 1
