-- Adds an event about the state of a pass. json_patch drops members that are null.
INSERT INTO events (job_id, seq, at_ns, type, data)
VALUES (:job, :seq, :now, 'pass', json_patch('{}', json_object(
  'run_id', :run, 'variant', :variant, 'pass', :pass, 'state', :state, 'reason', :reason)))
