-- Phases that a launch stamps itself: one block's on the timeline, and over all of its blocks.

INSERT INTO activity_kinds (kind, name) VALUES (9, 'phase');
ALTER TABLE activity ADD COLUMN step INTEGER NOT NULL DEFAULT 0; -- of a phase, from 1; 0 where there is none

CREATE TABLE phases (
  kernel_id INTEGER NOT NULL REFERENCES kernels ON DELETE CASCADE,
  position INTEGER NOT NULL, -- in a step
  name TEXT NOT NULL,
  phase TEXT, -- as a kernel's
  steps INTEGER NOT NULL, -- that were stamped, as blocks
  blocks INTEGER NOT NULL,
  mean_us REAL, -- of one step in one block; a block that had no part in it counts as 0
  min_us REAL,
  max_us REAL,
  share_ratio REAL, -- of a step
  PRIMARY KEY (kernel_id, position)
) STRICT, WITHOUT ROWID;

CREATE VIEW v_phases AS
SELECT p.job_id AS job, p.run_id AS run, r.workload, r.variant, r.engine, k.ordinal AS kernel, k.launch, f.position, f.name, f.phase, f.steps,
  f.blocks, f.mean_us, f.min_us, f.max_us, f.share_ratio
FROM phases f JOIN kernels k ON k.id = f.kernel_id JOIN passes p ON p.id = k.pass_id JOIN runs r ON r.id = p.run_id;

DROP VIEW v_activity;
CREATE VIEW v_activity AS
SELECT p.job_id AS job, p.run_id AS run, k.name AS kind, n.name, a.start_ns, a.end_ns, a.end_ns - a.start_ns AS duration_ns,
  nullif(a.stream, 0) AS stream, nullif(a.correlation, 0) AS correlation, nullif(a.graph_node, 0) AS graph_node, a.grid_x, a.grid_y,
  a.grid_z, a.block_x, a.block_y, a.block_z, a.registers, a.static_shared_bytes, a.dynamic_shared_bytes, a.bytes, nullif(a.step, 0) - 1 AS step
FROM activity a JOIN activity_kinds k ON k.kind = a.kind JOIN names n ON n.pass_id = a.pass_id AND n.ordinal = a.name
  JOIN passes p ON p.id = a.pass_id;

PRAGMA user_version = 9;
