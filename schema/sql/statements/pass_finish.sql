UPDATE passes SET state = iif(:reason IS NULL, 'completed', 'unavailable'), reason = :reason, finished_ns = :now,
  git_commit = :commit, device_id = (SELECT id FROM devices WHERE facts = :facts), activity_rows = :rows,
  activity_kept = :rows > 0
WHERE id = :pass
