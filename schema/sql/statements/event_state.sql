-- Adds an event about the state of a job. json_patch drops members that are null.
INSERT INTO events (job_id, seq, at_ns, type, data)
VALUES (:job, :seq, :now, 'state', json_patch('{}', json_object('state', :state, 'problem',
  json(iif(:domain IS NULL, 'null', json_object('domain', :domain, 'code', :code, 'pointer', :pointer, 'message', :message))))))
