-- Returns the newest run of suite :suite.
SELECT json_object('id', id, 'state', state, 'verdict', verdict, 'finished_at', utc_text(finished_ns))
FROM suite_runs WHERE suite = :suite ORDER BY id DESC LIMIT 1
