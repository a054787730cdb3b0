-- Returns 1 if the views of the database are those of :views, the text of views.sql. SQLite keeps the text of a view as it was
-- written.
SELECT total(instr(:views, sql) > 0) = count(*)
  AND count(*) = (length(:views) - length(replace(:views, 'CREATE VIEW ', ''))) / length('CREATE VIEW ')
FROM sqlite_schema WHERE type = 'view'
