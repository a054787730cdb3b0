-- Columns: application_id; user_version; number of tables, views and indices; 1 if rooflined's main tables exist.
SELECT a.application_id, v.user_version, (SELECT count(*) FROM sqlite_schema),
  (SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('jobs', 'runs', 'passes')) = 3
FROM pragma_application_id a, pragma_user_version v
