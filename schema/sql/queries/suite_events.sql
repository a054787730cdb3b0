-- Returns at most :limit events of suite run :run whose numbers are greater than :after. Columns: data, number (seq), type.
SELECT json_insert(data, '$.at', at), seq, type
FROM suite_events WHERE suite_run_id = :run AND seq > coalesce(:after, 0)
ORDER BY seq LIMIT coalesce(:limit, 1000)
