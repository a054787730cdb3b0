UPDATE webhook_events SET attempts = attempts + 1, state = :state, next_attempt_ns = :next_attempt, last_error = :error,
  ended_ns = iif(:state = 'pending', NULL, :now)
WHERE id = :id AND state = 'pending'
