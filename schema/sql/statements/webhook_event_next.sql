SELECT id, event_id, suite_run_id, body, attempts, created_ns, next_attempt_ns
FROM webhook_events WHERE state = 'pending' ORDER BY next_attempt_ns LIMIT 1
