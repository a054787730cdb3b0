UPDATE passes SET state = iif(:reason IS NULL, 'completed', 'unavailable'), reason = :reason, finished_ns = :now,
  git_commit = :commit, device_id = (SELECT id FROM devices WHERE properties = :properties),
  activity_rows = (SELECT coalesce(sum(activity_rows), 0) FROM activity_groups WHERE pass_id = :pass),
  activity_kept = EXISTS (SELECT 1 FROM activity_groups WHERE pass_id = :pass)
WHERE id = :pass
