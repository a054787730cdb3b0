-- Returns at most :limit events of job :job whose numbers are greater than :after. Columns: data, number (seq), type.
SELECT json_insert(data, '$.at', at), seq, type
FROM events WHERE job_id = :job AND seq > coalesce(:after, 0)
ORDER BY seq LIMIT coalesce(:limit, 1000)
