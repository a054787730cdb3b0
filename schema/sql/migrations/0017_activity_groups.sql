-- Before this migration, the rows of a kind were ordered only by their starts. A query for a window read all rows that start at
-- most the kind's longest duration before the window; if one row was as long as the trace, it read from the start of the trace.
CREATE TABLE activity_groups (
  pass_id INTEGER NOT NULL REFERENCES passes ON DELETE CASCADE,
  activity_group INTEGER NOT NULL,
  kind INTEGER NOT NULL REFERENCES activity_kinds,
  activity_rows INTEGER NOT NULL,
  longest_ns INTEGER NOT NULL,
  PRIMARY KEY (pass_id, activity_group)
) STRICT, WITHOUT ROWID;
ALTER TABLE activity RENAME TO activity_of_kinds;
CREATE TABLE activity (
  pass_id INTEGER NOT NULL,
  activity_group INTEGER NOT NULL,
  start_ns INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  duration_ns INTEGER NOT NULL,
  entry INTEGER NOT NULL,
  correlation INTEGER NOT NULL,
  step INTEGER NOT NULL,
  PRIMARY KEY (pass_id, activity_group, start_ns, ordinal),
  FOREIGN KEY (pass_id, activity_group) REFERENCES activity_groups ON DELETE CASCADE,
  FOREIGN KEY (pass_id, entry) REFERENCES activity_dictionary
) STRICT, WITHOUT ROWID;
CREATE TABLE duration_classes (class INTEGER PRIMARY KEY, least_ns INTEGER NOT NULL);
INSERT INTO duration_classes
WITH RECURSIVE classes(class, least_ns) AS (
  SELECT 0, -9223372036854775808 UNION ALL SELECT class + 1, 1024 << (2 * class) FROM classes WHERE class < 27)
SELECT class, least_ns FROM classes;
INSERT INTO activity
SELECT pass_id, 16 * (SELECT max(class) FROM duration_classes WHERE least_ns <= duration_ns) + kind, start_ns, ordinal, duration_ns,
  entry, correlation, step
FROM activity_of_kinds;
INSERT INTO activity_groups
SELECT pass_id, activity_group, activity_group % 16, count(*), max(0, max(duration_ns)) FROM activity
GROUP BY pass_id, activity_group;
DROP TABLE duration_classes;
DROP TABLE activity_of_kinds;
DROP TABLE activity_spans;
PRAGMA user_version = 17;
