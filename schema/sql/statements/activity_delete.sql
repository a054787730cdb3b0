DELETE FROM activity WHERE (pass_id, activity_group, start_ns, ordinal) IN
  (SELECT pass_id, activity_group, start_ns, ordinal FROM activity WHERE pass_id = :pass LIMIT :batch)
