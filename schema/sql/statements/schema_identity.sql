-- Returns application_id, user_version, the number of tables, views and indices, and 1 if rooflined's main tables exist.
SELECT identity.application_id, version.user_version, (SELECT count(*) FROM sqlite_schema),
  (SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('jobs', 'runs', 'passes')) = 3
FROM pragma_application_id identity, pragma_user_version version
