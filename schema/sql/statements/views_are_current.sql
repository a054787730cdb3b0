-- :views, the text of views.sql. Column: 1 if the views of the database are those of the text, which SQLite keeps as it was written.
SELECT total(instr(:views, sql) > 0) = count(*)
  AND count(*) = (length(:views) - length(replace(:views, 'CREATE VIEW ', ''))) / length('CREATE VIEW ')
FROM sqlite_schema WHERE type = 'view'
