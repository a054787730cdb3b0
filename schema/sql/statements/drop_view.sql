-- Returns the statement that drops one view; no row if there are no views.
SELECT printf('DROP VIEW "%w"', name) FROM sqlite_schema WHERE type = 'view' LIMIT 1
