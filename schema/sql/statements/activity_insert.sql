-- The parameters are bound by position: ?1 is the pass, and each row has seven more.
INSERT INTO activity (pass_id, activity_group, start_ns, ordinal, duration_ns, entry, correlation, step)
VALUES (?1, ?, ?, ?, ?, ?, ?, ?)
