-- Returns the names of the uploaded files that unfinished imports need.
SELECT json_group_array(run.params ->> '$.upload') FROM jobs job CROSS JOIN runs run ON run.job_id = job.id
WHERE job.kind = 'import' AND job.state IN ('queued', 'running', 'interrupted')
