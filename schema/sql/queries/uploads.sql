-- The names of the uploaded files that unfinished imports need.
SELECT json_group_array(r.params ->> '$.upload') FROM jobs j CROSS JOIN runs r ON r.job_id = j.id
WHERE j.kind = 'import' AND j.state IN ('queued', 'running', 'interrupted')
