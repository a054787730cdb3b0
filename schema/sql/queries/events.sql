-- :job :after :limit. Columns: data, seq, type.
SELECT json_insert(data, '$.at', at), seq, type
FROM events WHERE job_id = :job AND seq > coalesce(:after, 0)
ORDER BY seq LIMIT coalesce(:limit, 1000)
