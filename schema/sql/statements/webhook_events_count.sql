SELECT count(*) FROM webhook_events WHERE state = 'pending'
