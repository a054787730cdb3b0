-- The parameters are bound by position.
INSERT INTO activity_intervals (pass_id, level, start_ns, kind, device, stream, thread, activity_rows, busy_ns, longest_ns, name)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (pass_id, level, start_ns, kind, device, stream, thread) DO UPDATE SET activity_rows = activity_rows + excluded.activity_rows,
  busy_ns = busy_ns + excluded.busy_ns, name = iif(excluded.longest_ns > longest_ns, excluded.name, name),
  longest_ns = max(longest_ns, excluded.longest_ns)
