-- What happens inside a kernel: its instructions, and curves that belong to it.

ALTER TABLE kernels ADD COLUMN code_sha256 TEXT; -- of the machine code: two kernels with the same one are the same program

CREATE TABLE instructions (
  kernel_id INTEGER NOT NULL REFERENCES kernels ON DELETE CASCADE,
  "offset" INTEGER NOT NULL, -- bytes from the start of its function
  opcode TEXT, -- with its modifiers; NULL, as sass, where it was not disassembled
  sass TEXT,
  file TEXT, -- of the source, where the code was compiled with line numbers
  line INTEGER,
  counts TEXT NOT NULL CHECK (json_valid(counts)), -- {metric: number}
  reason TEXT,
  PRIMARY KEY (kernel_id, "offset")
) STRICT, WITHOUT ROWID;

CREATE TABLE series (
  kernel_id INTEGER NOT NULL REFERENCES kernels ON DELETE CASCADE,
  name TEXT NOT NULL,
  x REAL NOT NULL, -- a time line's: ns since the kernel began
  value REAL,
  PRIMARY KEY (kernel_id, name, x)
) STRICT, WITHOUT ROWID;

DROP VIEW v_kernels;
CREATE VIEW v_kernels AS
SELECT p.job_id AS job, p.run_id AS run, r.workload, r.variant, r.engine, j.device, p.name AS pass, k.ordinal, k.launch, k.phase,
  k.name, k.launches, k.total_us, k.min_us, k.median_us, k.max_us, k.share_ratio, k.registers_per_thread, k.static_shared_bytes,
  k.dynamic_shared_bytes, k.grid_x, k.grid_y, k.grid_z, k.block_x, k.block_y, k.block_z, k.theoretical_occupancy_ratio, k.reason,
  (SELECT json_group_object(metric, value) FROM kernel_metrics WHERE kernel_id = k.id) AS metrics, k.code_sha256
FROM kernels k JOIN passes p ON p.id = k.pass_id JOIN runs r ON r.id = p.run_id JOIN jobs j ON j.id = p.job_id;

CREATE VIEW v_instructions AS
SELECT p.job_id AS job, p.run_id AS run, r.workload, r.variant, k.ordinal AS kernel, k.name, i."offset", i.opcode, i.sass, i.file, i.line,
  i.counts, i.reason
FROM instructions i JOIN kernels k ON k.id = i.kernel_id JOIN passes p ON p.id = k.pass_id JOIN runs r ON r.id = p.run_id;

CREATE VIEW v_series AS
SELECT p.job_id AS job, p.run_id AS run, r.workload, r.variant, k.ordinal AS kernel, k.name, s.name AS series, s.x, s.value
FROM series s JOIN kernels k ON k.id = s.kernel_id JOIN passes p ON p.id = k.pass_id JOIN runs r ON r.id = p.run_id;

PRAGMA user_version = 4;
