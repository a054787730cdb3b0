-- Before this migration, rows of activity had 20 columns. The values that rows of a pass share move to activity_dictionary, each
-- combination once.
ALTER TABLE passes ADD COLUMN activity_stored INTEGER NOT NULL DEFAULT 0 CHECK (activity_stored IN (0, 1));
UPDATE passes SET activity_stored = 1 WHERE activity_kept = 1;
CREATE INDEX passes_with_hidden_activity ON passes (id) WHERE activity_stored = 1 AND activity_kept = 0;
CREATE TABLE activity_dictionary (
  pass_id INTEGER NOT NULL REFERENCES passes ON DELETE CASCADE,
  entry INTEGER NOT NULL,
  name INTEGER NOT NULL,
  stream INTEGER NOT NULL,
  graph_node INTEGER NOT NULL,
  grid_x INTEGER NOT NULL, grid_y INTEGER NOT NULL, grid_z INTEGER NOT NULL,
  block_x INTEGER NOT NULL, block_y INTEGER NOT NULL, block_z INTEGER NOT NULL,
  registers INTEGER NOT NULL,
  static_shared_bytes INTEGER NOT NULL,
  dynamic_shared_bytes INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY (pass_id, entry),
  FOREIGN KEY (pass_id, name) REFERENCES names
) STRICT, WITHOUT ROWID;
INSERT INTO activity_dictionary
SELECT pass_id, row_number() OVER (PARTITION BY pass_id) - 1, name, stream, graph_node, grid_x, grid_y, grid_z, block_x, block_y,
  block_z, registers, static_shared_bytes, dynamic_shared_bytes, bytes
FROM (SELECT DISTINCT pass_id, name, stream, graph_node, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers,
  static_shared_bytes, dynamic_shared_bytes, bytes
  FROM activity);
CREATE UNIQUE INDEX dictionary_values ON activity_dictionary (pass_id, name, stream, graph_node, grid_x, grid_y, grid_z, block_x,
  block_y, block_z, registers, static_shared_bytes, dynamic_shared_bytes, bytes);
ALTER TABLE activity RENAME TO wide_activity;
CREATE TABLE activity (
  pass_id INTEGER NOT NULL REFERENCES passes ON DELETE CASCADE,
  kind INTEGER NOT NULL REFERENCES activity_kinds,
  start_ns INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  duration_ns INTEGER NOT NULL,
  entry INTEGER NOT NULL,
  correlation INTEGER NOT NULL,
  step INTEGER NOT NULL,
  PRIMARY KEY (pass_id, kind, start_ns, ordinal),
  FOREIGN KEY (pass_id, entry) REFERENCES activity_dictionary
) STRICT, WITHOUT ROWID;
INSERT INTO activity
SELECT a.pass_id, a.kind, a.start_ns, a.ordinal, a.end_ns - a.start_ns, d.entry, a.correlation, a.step
FROM wide_activity a CROSS JOIN activity_dictionary d INDEXED BY dictionary_values
  ON d.pass_id = a.pass_id AND d.name = a.name AND d.stream = a.stream AND d.graph_node = a.graph_node
    AND d.grid_x = a.grid_x AND d.grid_y = a.grid_y AND d.grid_z = a.grid_z
    AND d.block_x = a.block_x AND d.block_y = a.block_y AND d.block_z = a.block_z AND d.registers = a.registers
    AND d.static_shared_bytes = a.static_shared_bytes AND d.dynamic_shared_bytes = a.dynamic_shared_bytes
    AND d.bytes = a.bytes;
DROP TABLE wide_activity;
DROP INDEX dictionary_values;
PRAGMA user_version = 14;
