-- The statement that drops a view; no row when there is none
SELECT printf('DROP VIEW "%w"', name) FROM sqlite_schema WHERE type = 'view' LIMIT 1
