-- Deletes all but the newest 1000 events.
DELETE FROM webhook_events WHERE id <= (SELECT max(id) FROM webhook_events) - 1000 RETURNING state
