-- The parameters are bound by position.
INSERT INTO activity (pass_id, activity_group, start_ns, ordinal, duration_ns, entry, correlation, step)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
