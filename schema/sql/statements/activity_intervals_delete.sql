DELETE FROM activity_intervals WHERE (pass_id, level, start_ns, kind, device, stream, thread) IN
  (SELECT pass_id, level, start_ns, kind, device, stream, thread FROM activity_intervals WHERE pass_id = :pass LIMIT :batch)
