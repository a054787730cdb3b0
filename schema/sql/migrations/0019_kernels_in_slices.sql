-- Kernels of a pass that is not committed yet have no pass_id, so that no query finds them.
CREATE TABLE kernels_19 (
  id INTEGER PRIMARY KEY,
  pass_id INTEGER REFERENCES passes ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  launch TEXT,
  phase TEXT,
  name TEXT NOT NULL,
  launches INTEGER NOT NULL,
  total_us REAL,
  min_us REAL,
  median_us REAL,
  max_us REAL,
  share_ratio REAL,
  registers_per_thread REAL,
  static_shared_bytes REAL,
  dynamic_shared_bytes REAL,
  grid_x INTEGER, grid_y INTEGER, grid_z INTEGER,
  block_x INTEGER, block_y INTEGER, block_z INTEGER,
  theoretical_occupancy_ratio REAL,
  code_sha256 TEXT,
  reason TEXT,
  stored_for INTEGER REFERENCES passes ON DELETE CASCADE,
  UNIQUE (pass_id, ordinal),
  CHECK ((pass_id IS NULL) <> (stored_for IS NULL))
) STRICT;
INSERT INTO kernels_19 (id, pass_id, ordinal, launch, phase, name, launches, total_us, min_us, median_us, max_us, share_ratio,
  registers_per_thread, static_shared_bytes, dynamic_shared_bytes, grid_x, grid_y, grid_z, block_x, block_y, block_z,
  theoretical_occupancy_ratio, code_sha256, reason)
SELECT id, pass_id, ordinal, launch, phase, name, launches, total_us, min_us, median_us, max_us, share_ratio,
  registers_per_thread, static_shared_bytes, dynamic_shared_bytes, grid_x, grid_y, grid_z, block_x, block_y, block_z,
  theoretical_occupancy_ratio, code_sha256, reason
FROM kernels;
DROP TABLE kernels;
ALTER TABLE kernels_19 RENAME TO kernels;
CREATE UNIQUE INDEX kernels_not_committed ON kernels (stored_for, ordinal) WHERE stored_for IS NOT NULL;
PRAGMA user_version = 19;
