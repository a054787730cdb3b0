-- The schema of version 12, the first one, as its daemon created it. Kept for tests of upgrades; not to be changed.
-- The tables of a new database. A change of a table is made here and in a migration, schema/sql/migrations/NNNN_*.sql, which
-- upgrades existing databases. Times are integers, UTC in ns since 1970. The generated column *_at has the time of *_ns as RFC
-- 3339 text. A REAL that is NULL was not measured; its row or its pass has the reason.

CREATE TABLE sources ( -- posted code, each text once; deleted with the last job that refers to it
  sha256 TEXT PRIMARY KEY,
  text TEXT NOT NULL CHECK (json_valid(text)) -- code or binary, arguments, options, variants
) STRICT;

CREATE TABLE jobs (
  id INTEGER PRIMARY KEY AUTOINCREMENT, -- ids of deleted jobs are not reused
  kind TEXT NOT NULL,
  device TEXT NOT NULL,
  origin TEXT NOT NULL DEFAULT 'client' CHECK (origin IN ('client', 'daemon')), -- daemon: it measures stale ceilings again
  state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'completed', 'failed', 'cancelled', 'interrupted')),
  request TEXT NOT NULL CHECK (json_valid(request)), -- with all defaults filled in
  profile TEXT CHECK (profile IS NULL OR json_valid(profile)), -- what the counters pass collects; NULL: the job has no such pass
  source TEXT REFERENCES sources (sha256),
  deadline_s INTEGER NOT NULL,
  created_ns INTEGER NOT NULL,
  started_ns INTEGER,
  finished_ns INTEGER,
  problem_domain TEXT,
  problem_code INTEGER,
  problem_message TEXT,
  worker_deaths INTEGER NOT NULL DEFAULT 0, -- how often the worker died during the job's passes
  daemon_deaths INTEGER NOT NULL DEFAULT 0, -- how often the daemon or the host crashed during them
  events INTEGER NOT NULL DEFAULT 0, -- number of events so far, which is the seq of the last one
  events_kept INTEGER NOT NULL DEFAULT 1 CHECK (events_kept IN (0, 1)), -- 0: deleted by retention
  idempotency_key TEXT UNIQUE,
  body_sha256 TEXT,
  created_at TEXT AS (
    strftime('%Y-%m-%dT%H:%M:%S', created_ns / 1000000000, 'unixepoch') || printf('.%09dZ', created_ns % 1000000000)),
  started_at TEXT AS (
    strftime('%Y-%m-%dT%H:%M:%S', started_ns / 1000000000, 'unixepoch') || printf('.%09dZ', started_ns % 1000000000)),
  finished_at TEXT AS (
    strftime('%Y-%m-%dT%H:%M:%S', finished_ns / 1000000000, 'unixepoch') || printf('.%09dZ', finished_ns % 1000000000))
) STRICT;
CREATE INDEX jobs_by_state ON jobs (state, device, id);
CREATE INDEX jobs_by_end ON jobs (finished_ns) WHERE finished_ns IS NOT NULL;
CREATE INDEX jobs_with_events ON jobs (finished_ns) WHERE events_kept = 1;
CREATE INDEX jobs_by_source ON jobs (source) WHERE source IS NOT NULL;

CREATE TABLE runs (
  id INTEGER PRIMARY KEY,
  job_id INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  workload TEXT NOT NULL,
  variant TEXT NOT NULL,
  params TEXT NOT NULL CHECK (json_valid(params)), -- with all defaults filled in
  -- The parameters that differ from their defaults, keys sorted. Runs with equal text are repetitions of each other, even if a
  -- newer version of rooflined has added parameters between them.
  nondefault_params TEXT NOT NULL CHECK (json_valid(nondefault_params)),
  log TEXT, -- the compiler's log of posted code
  -- The worker reports the columns below with the first pass that it commits.
  engine TEXT,
  dataset TEXT,
  dataset_sha256 TEXT,
  deterministic INTEGER CHECK (deterministic IN (0, 1)),
  deterministic_note TEXT,
  partial INTEGER CHECK (partial IN (0, 1)), -- 1: trained on fewer images than the data set has
  images_per_epoch INTEGER,
  steps_per_epoch INTEGER,
  parameters INTEGER,
  floor_operations REAL, -- minimum work of one iteration: of an epoch, or of the launches of a kernel job
  floor_bytes REAL,
  floor_written_bytes REAL, -- the part of floor_bytes that is written
  floor_precision TEXT, -- precision of floor_operations
  "precision" TEXT AS (params ->> '$.precision'),
  batch_size INTEGER AS (params ->> '$.batch_size'),
  seed INTEGER AS (params ->> '$.seed'),
  UNIQUE (job_id, ordinal)
) STRICT;
CREATE INDEX runs_by_workload ON runs (workload);

CREATE TABLE devices ( -- one row for each distinct set of facts that workers reported
  id INTEGER PRIMARY KEY,
  facts TEXT NOT NULL UNIQUE CHECK (json_valid(facts)),
  last_ns INTEGER NOT NULL DEFAULT 0, -- when a worker last reported these facts
  name TEXT AS (facts ->> '$.name'),
  uuid TEXT AS (facts ->> '$.uuid'),
  -- The identity of the device, and the properties on which its ceilings depend. A CPU has no UUID and no driver.
  identity TEXT AS (coalesce(facts ->> '$.uuid', (facts ->> '$.name') || ', ' || (facts ->> '$.threads') || ' threads')),
  driver TEXT AS (coalesce(nullif(facts ->> '$.driver', ''), facts ->> '$.driver_cuda')),
  sm_clock_max_mhz REAL AS ((facts ->> '$.sm_clock_max_khz') / 1000.0),
  memory_clock_max_mhz REAL AS ((facts ->> '$.memory_clock_max_khz') / 1000.0),
  clock_setting TEXT AS ( -- of a CPU; NULL: the system does not report it
    nullif(facts ->> '$.governor', '') || ', at most ' || round((facts ->> '$.clock_max_khz') / 1000.0) || ' MHz'),
  -- The size of all cache levels that keep data between launches, and the same without the last level.
  cache_bytes REAL AS (coalesce(facts ->> '$.l2_bytes', facts ->> '$.cache_bytes')),
  private_cache_bytes REAL AS (coalesce(facts ->> '$.private_cache_bytes', 0))
) STRICT;
CREATE INDEX devices_by_identity ON devices (identity, last_ns);

CREATE TABLE passes (
  id INTEGER PRIMARY KEY,
  job_id INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE,
  run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  ordinal INTEGER NOT NULL, -- 0 timing, 1 activity, 2 counters
  name TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'running', 'completed', 'unavailable')),
  reason TEXT, -- why it is unavailable; if it is pending again: how its worker died
  started_ns INTEGER,
  finished_ns INTEGER,
  device_id INTEGER REFERENCES devices,
  ceilings_id INTEGER REFERENCES passes ON DELETE SET NULL, -- timing pass of the ceilings from which the floors are computed
  git_commit TEXT, -- of the worker
  activity_rows INTEGER NOT NULL DEFAULT 0, -- number of recorded raw rows
  activity_kept INTEGER NOT NULL DEFAULT 0 CHECK (activity_kept IN (0, 1)), -- 0: none recorded, or deleted by retention
  started_at TEXT AS (
    strftime('%Y-%m-%dT%H:%M:%S', started_ns / 1000000000, 'unixepoch') || printf('.%09dZ', started_ns % 1000000000)),
  finished_at TEXT AS (
    strftime('%Y-%m-%dT%H:%M:%S', finished_ns / 1000000000, 'unixepoch') || printf('.%09dZ', finished_ns % 1000000000)),
  UNIQUE (run_id, ordinal)
) STRICT;
CREATE INDEX passes_by_job ON passes (job_id, ordinal, run_id);
CREATE INDEX passes_by_end ON passes (finished_ns) WHERE finished_ns IS NOT NULL;
CREATE INDEX passes_with_activity ON passes (finished_ns) WHERE activity_kept = 1;
CREATE INDEX passes_by_ceilings ON passes (ceilings_id) WHERE ceilings_id IS NOT NULL;

CREATE TABLE epochs (
  pass_id INTEGER NOT NULL REFERENCES passes ON DELETE CASCADE,
  epoch INTEGER NOT NULL, -- from 0 over warm-up and measured epochs
  warmup INTEGER NOT NULL CHECK (warmup IN (0, 1)),
  device_ms REAL,
  host_ms REAL,
  evaluation_ms REAL,
  images REAL,
  train_loss REAL,
  test_loss REAL,
  test_accuracy_ratio REAL,
  loss_scale REAL,
  skipped_steps REAL,
  sm_clock_before_mhz REAL,
  sm_clock_after_mhz REAL,
  memory_clock_mhz REAL,
  temperature_c REAL,
  power_w REAL,
  throttle_reasons TEXT NOT NULL,
  unavailable TEXT CHECK (json_valid(unavailable)), -- {field: reason}
  suspect INTEGER NOT NULL DEFAULT 0 CHECK (suspect IN (0, 1)), -- 1: faster than its floor, so the time is wrong
  suspect_reason TEXT,
  epoch_ms REAL AS (coalesce(device_ms, host_ms)), -- device time if it was measured
  PRIMARY KEY (pass_id, epoch)
) STRICT, WITHOUT ROWID;

CREATE TABLE samples ( -- times of a kernel job's launches
  pass_id INTEGER NOT NULL REFERENCES passes ON DELETE CASCADE,
  mode TEXT NOT NULL CHECK (mode IN ('cold', 'warm')), -- cold: other data fills the caches when the launch begins
  ordinal INTEGER NOT NULL, -- from 0 within the mode, in time order
  device_us REAL, -- warm: the mean of back-to-back launches
  suspect INTEGER NOT NULL DEFAULT 0 CHECK (suspect IN (0, 1)), -- 1: faster than its floor, or the device was throttled
  suspect_reason TEXT,
  PRIMARY KEY (pass_id, mode, ordinal)
) STRICT, WITHOUT ROWID;
CREATE INDEX samples_suspect ON samples (pass_id) WHERE suspect = 1;

CREATE TABLE measurements (
  pass_id INTEGER NOT NULL REFERENCES passes ON DELETE CASCADE,
  name TEXT NOT NULL, -- ends with its unit
  value REAL,
  reason TEXT,
  PRIMARY KEY (pass_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE kernels ( -- activity pass: all executions of a kernel in an epoch; counters pass: one kernel of one step
  id INTEGER PRIMARY KEY,
  pass_id INTEGER NOT NULL REFERENCES passes ON DELETE CASCADE,
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
  grid_x INTEGER, grid_y INTEGER, grid_z INTEGER, -- NULL on a CPU
  block_x INTEGER, block_y INTEGER, block_z INTEGER,
  theoretical_occupancy_ratio REAL,
  code_sha256 TEXT, -- of the machine code
  reason TEXT,
  UNIQUE (pass_id, ordinal)
) STRICT;

CREATE TABLE phases ( -- phases of a step, of kernels that execute whole steps and record the times themselves
  kernel_id INTEGER NOT NULL REFERENCES kernels ON DELETE CASCADE,
  position INTEGER NOT NULL, -- of the phase in a step, from 0
  name TEXT NOT NULL,
  phase TEXT, -- as in kernels
  steps INTEGER NOT NULL, -- number of steps that were timed
  blocks INTEGER NOT NULL, -- number of blocks that were timed
  mean_us REAL, -- of one step in one block; a block that skips the phase counts as 0
  min_us REAL,
  max_us REAL,
  share_ratio REAL, -- of a step
  PRIMARY KEY (kernel_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE kernel_metrics (
  kernel_id INTEGER NOT NULL REFERENCES kernels ON DELETE CASCADE,
  metric TEXT NOT NULL,
  value REAL,
  reason TEXT,
  PRIMARY KEY (kernel_id, metric)
) STRICT, WITHOUT ROWID;

CREATE TABLE instructions (
  kernel_id INTEGER NOT NULL REFERENCES kernels ON DELETE CASCADE,
  "offset" INTEGER NOT NULL, -- bytes from the start of the function
  opcode TEXT, -- with modifiers; opcode and sass are NULL if the code could not be disassembled
  sass TEXT,
  file TEXT, -- source file; NULL: the code was compiled without line numbers
  line INTEGER,
  counts TEXT NOT NULL CHECK (json_valid(counts)), -- {metric: number}
  reason TEXT,
  PRIMARY KEY (kernel_id, "offset")
) STRICT, WITHOUT ROWID;

CREATE TABLE series ( -- points of a kernel's curves
  kernel_id INTEGER NOT NULL REFERENCES kernels ON DELETE CASCADE,
  name TEXT NOT NULL,
  x REAL NOT NULL, -- in timelines: ns since the kernel began
  value REAL,
  PRIMARY KEY (kernel_id, name, x)
) STRICT, WITHOUT ROWID;

CREATE TABLE names ( -- the names in the activity rows of a pass
  pass_id INTEGER NOT NULL REFERENCES passes ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  name TEXT NOT NULL,
  PRIMARY KEY (pass_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE activity_kinds (kind INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
INSERT INTO activity_kinds (kind, name) VALUES (0, 'kernel'), (1, 'memcpy'), (2, 'memset'), (3, 'memory'), (4, 'runtime'),
  (5, 'driver'), (6, 'range'), (7, 'overhead'), (8, 'span'), (9, 'phase');

CREATE TABLE activity ( -- raw rows, in ns since the trace began; retention deletes them first
  pass_id INTEGER NOT NULL REFERENCES passes ON DELETE CASCADE,
  kind INTEGER NOT NULL REFERENCES activity_kinds,
  start_ns INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  end_ns INTEGER NOT NULL,
  name INTEGER NOT NULL,
  stream INTEGER NOT NULL, -- stream, correlation, graph_node and step: 0 means none
  correlation INTEGER NOT NULL,
  graph_node INTEGER NOT NULL,
  step INTEGER NOT NULL DEFAULT 0, -- of a phase, from 1
  grid_x INTEGER NOT NULL, grid_y INTEGER NOT NULL, grid_z INTEGER NOT NULL,
  block_x INTEGER NOT NULL, block_y INTEGER NOT NULL, block_z INTEGER NOT NULL,
  registers INTEGER NOT NULL,
  static_shared_bytes INTEGER NOT NULL,
  dynamic_shared_bytes INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY (pass_id, kind, start_ns, ordinal),
  FOREIGN KEY (pass_id, name) REFERENCES names
) STRICT, WITHOUT ROWID;

-- The duration of the longest row of each kind. A row that overlaps a time window starts at most that long before it, so the rows
-- of a window lie in one range of the primary key of activity.
CREATE TABLE activity_spans (
  pass_id INTEGER NOT NULL REFERENCES passes ON DELETE CASCADE,
  kind INTEGER NOT NULL REFERENCES activity_kinds,
  activity_rows INTEGER NOT NULL,
  longest_ns INTEGER NOT NULL,
  PRIMARY KEY (pass_id, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE precision_rates ( -- the rates that can execute operations of a precision; the fastest determines their floor
  precision TEXT NOT NULL,
  name TEXT NOT NULL,
  PRIMARY KEY (precision, name)
) STRICT, WITHOUT ROWID;
INSERT INTO precision_rates (precision, name) VALUES
  ('fp64', 'fp64_operations_per_s'), ('fp64', 'tensor_fp64_operations_per_s'),
  ('fp32', 'fp32_operations_per_s'),
  ('tf32', 'fp32_operations_per_s'), ('tf32', 'tensor_tf32_operations_per_s'),
  ('fp16', 'fp32_operations_per_s'), ('fp16', 'fp16_operations_per_s'), ('fp16', 'tensor_fp16_operations_per_s'),
  ('bf16', 'fp32_operations_per_s'), ('bf16', 'bf16_operations_per_s'), ('bf16', 'tensor_bf16_operations_per_s');

CREATE TABLE events (
  job_id INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE,
  seq INTEGER NOT NULL, -- from 1 within the job
  at_ns INTEGER NOT NULL,
  type TEXT NOT NULL,
  data TEXT NOT NULL CHECK (json_valid(data)),
  at TEXT AS (strftime('%Y-%m-%dT%H:%M:%S', at_ns / 1000000000, 'unixepoch') || printf('.%09dZ', at_ns % 1000000000)),
  PRIMARY KEY (job_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE tokens (
  hash TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  created_ns INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

PRAGMA application_id = 1919905638; -- "roof"
PRAGMA user_version = 12; -- the number of the last migration; 12 if there is none
-- The views, for queries with the sqlite3 shell (docs/schema.md) and for the API. An upgrade drops and creates all of them.
-- If a number is NULL, a *_reason column or `unavailable`, a JSON object {column: reason}, has the reason.

-- One row for each run. Times are those of the timing pass's epochs without warm-up; losses and accuracy are the last epoch's.
CREATE VIEW v_runs AS
SELECT job, run, job_state, workload, variant, "precision", batch_size, seed, engine, dataset, "partial", deterministic, device,
  device_name, git_commit, at, epochs, epoch_ms_median, epoch_ms_min, images_per_epoch * 1000 / epoch_ms_median AS images_per_s,
  peak_memory_bytes, test_accuracy_ratio, train_loss, test_loss, launches_per_step, launch_gap_ratio, suspect, suspect_reason,
  json_patch('{}', json_object( -- json_patch drops members that are null
    'epoch_ms_median', iif(epoch_ms_median IS NULL, timing_reason, NULL),
    'epoch_ms_min', iif(epoch_ms_min IS NULL, timing_reason, NULL),
    'images_per_s', iif(epoch_ms_median IS NULL OR images_per_epoch IS NULL, timing_reason, NULL),
    'peak_memory_bytes', iif(peak_memory_bytes IS NULL, coalesce(peak_memory_reason, timing_reason), NULL),
    'test_accuracy_ratio',
    iif(test_accuracy_ratio IS NULL, coalesce(epoch_unavailable ->> '$.test_accuracy_ratio', timing_reason), NULL),
    'launches_per_step', iif(launches_per_step IS NULL, coalesce(launches_per_step_reason, timing_reason), NULL),
    'launch_gap_ratio', iif(launch_gap_ratio IS NULL, coalesce(launch_gap_reason, activity_reason), NULL))) AS unavailable
FROM (
  SELECT r.job_id AS job, r.id AS run, j.state AS job_state, r.workload, r.variant, r."precision", r.batch_size, r.seed, r.engine,
    r.dataset, r."partial", r.deterministic, j.device, d.name AS device_name, t.git_commit, t.finished_at AS at,
    (SELECT count(*) FROM epochs e WHERE e.pass_id = t.id AND e.warmup = 0) AS epochs,
    (SELECT avg(epoch_ms) FROM (
       SELECT e.epoch_ms, row_number() OVER (ORDER BY e.epoch_ms) AS rank, count(*) OVER () AS n
       FROM epochs e WHERE e.pass_id = t.id AND e.warmup = 0 AND e.epoch_ms IS NOT NULL)
     WHERE rank IN ((n + 1) / 2, (n + 2) / 2)) AS epoch_ms_median,
    (SELECT min(e.epoch_ms) FROM epochs e WHERE e.pass_id = t.id AND e.warmup = 0) AS epoch_ms_min,
    (SELECT avg(e.images) FROM epochs e WHERE e.pass_id = t.id AND e.warmup = 0) AS images_per_epoch,
    EXISTS (SELECT 1 FROM epochs e WHERE e.pass_id = t.id AND e.warmup = 0 AND e.suspect = 1)
      OR EXISTS (SELECT 1 FROM samples s WHERE s.pass_id = t.id AND s.suspect = 1) AS suspect,
    coalesce((SELECT min(e.suspect_reason) FROM epochs e WHERE e.pass_id = t.id AND e.warmup = 0 AND e.suspect = 1),
             (SELECT min(s.suspect_reason) FROM samples s WHERE s.pass_id = t.id AND s.suspect = 1)) AS suspect_reason,
    last.test_accuracy_ratio, last.train_loss, last.test_loss, last.unavailable AS epoch_unavailable,
    peak.value AS peak_memory_bytes, peak.reason AS peak_memory_reason,
    launches.value AS launches_per_step, launches.reason AS launches_per_step_reason,
    gap.value AS launch_gap_ratio, gap.reason AS launch_gap_reason,
    CASE WHEN t.id IS NULL THEN 'the job did not ask for the timing pass'
         WHEN t.state = 'unavailable' THEN t.reason
         WHEN t.state <> 'completed' THEN 'the timing pass is ' || t.state
         ELSE 'the timing pass did not measure it' END AS timing_reason,
    CASE WHEN a.id IS NULL THEN 'the job did not ask for the activity pass'
         WHEN a.state = 'unavailable' THEN a.reason
         WHEN a.state <> 'completed' THEN 'the activity pass is ' || a.state
         ELSE 'the activity pass did not measure it' END AS activity_reason
  FROM runs r JOIN jobs j ON j.id = r.job_id
    LEFT JOIN passes t ON t.run_id = r.id AND t.ordinal = 0
    LEFT JOIN passes a ON a.run_id = r.id AND a.ordinal = 1
    LEFT JOIN devices d ON d.id = coalesce(t.device_id, a.device_id)
    LEFT JOIN epochs last ON last.pass_id = t.id AND last.epoch = (SELECT max(epoch) FROM epochs WHERE pass_id = t.id)
    LEFT JOIN measurements peak ON peak.pass_id = t.id AND peak.name = 'peak_memory_bytes'
    LEFT JOIN measurements launches ON launches.pass_id = t.id AND launches.name = 'launches_per_step'
    LEFT JOIN measurements gap ON gap.pass_id = a.id AND gap.name = 'launch_gap_ratio');

-- One row for each run: the medians of its samples with a cold and with a warm cache.
CREATE VIEW v_launch_times AS
SELECT run, cold_us, warm_us, iif(cold_us IS NULL, coalesce(cold_reason, reason), NULL) AS cold_reason,
  iif(warm_us IS NULL, coalesce(warm_reason, reason), NULL) AS warm_reason,
  (SELECT min(suspect_reason) FROM samples
   WHERE samples.pass_id = medians.pass_id AND mode = 'cold' AND suspect) AS cold_suspect,
  (SELECT min(suspect_reason) FROM samples
   WHERE samples.pass_id = medians.pass_id AND mode = 'warm' AND suspect) AS warm_suspect
FROM (
  SELECT r.id AS run, t.id AS pass_id, cold.value AS cold_us, cold.reason AS cold_reason, warm.value AS warm_us,
    warm.reason AS warm_reason,
    CASE WHEN t.id IS NULL THEN 'the job did not ask for the timing pass'
         WHEN t.state = 'unavailable' THEN t.reason
         WHEN t.state <> 'completed' THEN 'the timing pass is ' || t.state
         ELSE 'the timing pass did not measure it' END AS reason
  FROM runs r LEFT JOIN passes t ON t.run_id = r.id AND t.ordinal = 0
    LEFT JOIN measurements cold ON cold.pass_id = t.id AND cold.name = 'time_cold_us_median'
    LEFT JOIN measurements warm ON warm.pass_id = t.id AND warm.name = 'time_warm_us_median') medians;

-- One row for each ordered pair of runs of the same workload, also of different jobs; filter by both runs, or by a job. A ratio
-- with a suspect time is NULL, because a time below its floor is wrong.
CREATE VIEW v_pairs AS
SELECT workload, baseline_job, baseline_run, baseline_device, baseline_variant,
  candidate_job, candidate_run, candidate_device, candidate_variant,
  baseline_epoch_ms_median, candidate_epoch_ms_median, baseline_epoch_ms_min, candidate_epoch_ms_min,
  baseline_images_per_s, candidate_images_per_s,
  iif(epoch_suspect IS NULL, baseline_epoch_ms_median / candidate_epoch_ms_median, NULL) AS speedup_ratio,
  iif(epoch_suspect IS NULL, baseline_epoch_ms_min / candidate_epoch_ms_min, NULL) AS speedup_min_ratio,
  baseline_time_cold_us_median, candidate_time_cold_us_median, baseline_time_warm_us_median, candidate_time_warm_us_median,
  iif(cold_suspect IS NULL, baseline_time_cold_us_median / candidate_time_cold_us_median, NULL) AS speedup_cold_ratio,
  iif(warm_suspect IS NULL, baseline_time_warm_us_median / candidate_time_warm_us_median, NULL) AS speedup_warm_ratio,
  baseline_peak_memory_bytes, candidate_peak_memory_bytes,
  candidate_peak_memory_bytes / baseline_peak_memory_bytes AS peak_memory_ratio,
  baseline_test_accuracy_ratio, candidate_test_accuracy_ratio,
  candidate_test_accuracy_ratio - baseline_test_accuracy_ratio AS test_accuracy_difference_ratio,
  baseline_launches_per_step, candidate_launches_per_step, baseline_launch_gap_ratio, candidate_launch_gap_ratio,
  baseline_unavailable, candidate_unavailable,
  json_patch('{}', json_object( -- json_patch drops members that are null
    'speedup_ratio', coalesce(epoch_suspect, baseline_name || (baseline_unavailable ->> '$.epoch_ms_median'),
                              candidate_name || (candidate_unavailable ->> '$.epoch_ms_median')),
    'speedup_min_ratio', coalesce(epoch_suspect, baseline_name || (baseline_unavailable ->> '$.epoch_ms_min'),
                                  candidate_name || (candidate_unavailable ->> '$.epoch_ms_min')),
    'speedup_cold_ratio', coalesce(cold_suspect, baseline_name || baseline_cold_reason, candidate_name || candidate_cold_reason),
    'speedup_warm_ratio', coalesce(warm_suspect, baseline_name || baseline_warm_reason, candidate_name || candidate_warm_reason),
    'peak_memory_ratio', coalesce(baseline_name || (baseline_unavailable ->> '$.peak_memory_bytes'),
                                  candidate_name || (candidate_unavailable ->> '$.peak_memory_bytes')),
    'test_accuracy_difference_ratio', coalesce(baseline_name || (baseline_unavailable ->> '$.test_accuracy_ratio'),
                                               candidate_name || (candidate_unavailable ->> '$.test_accuracy_ratio'))
  )) AS unavailable
FROM (
  SELECT b.workload, b.job AS baseline_job, c.job AS candidate_job, b.run AS baseline_run, c.run AS candidate_run,
    b.device AS baseline_device, c.device AS candidate_device, b.variant AS baseline_variant, c.variant AS candidate_variant,
    b.variant || iif(b.variant = c.variant, ' of run ' || b.run, '') || ': ' AS baseline_name,
    c.variant || iif(b.variant = c.variant, ' of run ' || c.run, '') || ': ' AS candidate_name,
    b.epoch_ms_median AS baseline_epoch_ms_median, c.epoch_ms_median AS candidate_epoch_ms_median,
    b.epoch_ms_min AS baseline_epoch_ms_min, c.epoch_ms_min AS candidate_epoch_ms_min,
    b.images_per_s AS baseline_images_per_s, c.images_per_s AS candidate_images_per_s,
    bt.cold_us AS baseline_time_cold_us_median, ct.cold_us AS candidate_time_cold_us_median,
    bt.warm_us AS baseline_time_warm_us_median, ct.warm_us AS candidate_time_warm_us_median,
    b.peak_memory_bytes AS baseline_peak_memory_bytes, c.peak_memory_bytes AS candidate_peak_memory_bytes,
    b.test_accuracy_ratio AS baseline_test_accuracy_ratio, c.test_accuracy_ratio AS candidate_test_accuracy_ratio,
    b.launches_per_step AS baseline_launches_per_step, c.launches_per_step AS candidate_launches_per_step,
    b.launch_gap_ratio AS baseline_launch_gap_ratio, c.launch_gap_ratio AS candidate_launch_gap_ratio,
    b.unavailable AS baseline_unavailable, c.unavailable AS candidate_unavailable,
    bt.cold_reason AS baseline_cold_reason, ct.cold_reason AS candidate_cold_reason,
    bt.warm_reason AS baseline_warm_reason, ct.warm_reason AS candidate_warm_reason,
    coalesce(b.variant || ' is suspect: ' || b.suspect_reason,
             c.variant || ' is suspect: ' || c.suspect_reason) AS epoch_suspect,
    coalesce(b.variant || ' is suspect: ' || bt.cold_suspect,
             c.variant || ' is suspect: ' || ct.cold_suspect) AS cold_suspect,
    coalesce(b.variant || ' is suspect: ' || bt.warm_suspect,
             c.variant || ' is suspect: ' || ct.warm_suspect) AS warm_suspect
  FROM v_runs b JOIN v_runs c ON c.workload = b.workload
    JOIN v_launch_times bt ON bt.run = b.run JOIN v_launch_times ct ON ct.run = c.run);

-- The pairs of a job's first fp32 run with every other run of the same workload in the job.
CREATE VIEW v_comparisons AS
SELECT baseline_job AS job, baseline_device AS device, *
FROM v_pairs
WHERE candidate_job = baseline_job AND candidate_run <> baseline_run AND baseline_run = (
  SELECT id FROM runs WHERE job_id = baseline_job AND workload = v_pairs.workload AND variant = 'fp32' ORDER BY ordinal LIMIT 1);

CREATE VIEW v_epochs AS
SELECT p.job_id AS job, p.run_id AS run, r.workload, r.variant, r.engine, j.device, p.finished_at AS at, e.epoch, e.warmup,
  e.epoch_ms, e.images * 1000 / e.epoch_ms AS images_per_s, e.device_ms, e.host_ms, e.evaluation_ms, e.images, e.train_loss,
  e.test_loss, e.test_accuracy_ratio, e.loss_scale, e.skipped_steps, e.sm_clock_before_mhz, e.sm_clock_after_mhz,
  e.memory_clock_mhz, e.temperature_c, e.power_w, e.throttle_reasons, e.unavailable, e.suspect, e.suspect_reason, r.partial
FROM epochs e JOIN passes p ON p.id = e.pass_id JOIN runs r ON r.id = p.run_id JOIN jobs j ON j.id = p.job_id;

CREATE VIEW v_samples AS
SELECT p.job_id AS job, p.run_id AS run, r.workload, r.variant, r.params ->> '$.dtype' AS dtype, r.params -> '$.shape' AS shape,
  r.engine, j.device, p.finished_at AS at, p.name AS pass, s.mode, s.ordinal, s.device_us, s.suspect, s.suspect_reason
FROM samples s JOIN passes p ON p.id = s.pass_id JOIN runs r ON r.id = p.run_id JOIN jobs j ON j.id = p.job_id;

-- The newest ceilings pass of each device and driver. stale_reason is not NULL if the device reports another driver or other
-- clocks now.
CREATE VIEW v_ceiling_passes AS
SELECT p.job_id AS job, p.run_id AS run, p.id AS pass_id, j.device, d.name AS device_name, d.identity AS device_identity,
  d.driver, p.finished_at AS at, unixepoch() - p.finished_ns / 1000000000 AS age_s, p.git_commit, d.sm_clock_max_mhz,
    d.memory_clock_max_mhz,
  CASE WHEN now.driver IS NOT d.driver THEN printf('measured with driver %s, and the device has %s now', d.driver, now.driver)
       WHEN now.sm_clock_max_mhz IS NOT d.sm_clock_max_mhz OR now.memory_clock_max_mhz IS NOT d.memory_clock_max_mhz
       THEN printf('measured with clocks of at most %g and %g MHz, and the device has %g and %g MHz now', d.sm_clock_max_mhz,
                   d.memory_clock_max_mhz, now.sm_clock_max_mhz, now.memory_clock_max_mhz)
       WHEN now.clock_setting IS NOT d.clock_setting
       THEN printf('measured with the clocks set to %s, and the device has %s now', coalesce(d.clock_setting, 'unknown settings'),
                   coalesce(now.clock_setting, 'unknown settings')) END AS stale_reason,
  d.clock_setting
FROM runs r JOIN passes p ON p.run_id = r.id AND p.ordinal = 0 AND p.state = 'completed'
  JOIN jobs j ON j.id = p.job_id JOIN devices d ON d.id = p.device_id
  JOIN devices now ON now.id = (SELECT id FROM devices WHERE identity = d.identity ORDER BY last_ns DESC LIMIT 1)
WHERE r.workload = 'ceilings' AND r.id = (
  SELECT nr.id FROM runs nr CROSS JOIN passes np ON np.run_id = nr.id AND np.ordinal = 0 AND np.state = 'completed'
    CROSS JOIN devices nd ON nd.id = np.device_id
  WHERE nr.workload = 'ceilings' AND nd.identity = d.identity AND nd.driver IS d.driver ORDER BY nr.id DESC LIMIT 1);

-- One row for each rate of the passes in v_ceiling_passes.
CREATE VIEW v_ceilings AS
SELECT c.job, c.run, c.device, c.device_name, c.device_identity, c.driver, c.at, c.age_s, c.git_commit, m.name, m.value, m.reason,
  c.sm_clock_max_mhz, c.memory_clock_max_mhz,
  (SELECT value FROM measurements WHERE pass_id = c.pass_id AND name = 'sm_clock_least_mhz') AS sm_clock_least_mhz,
  (SELECT value FROM measurements WHERE pass_id = c.pass_id AND name = 'temperature_c_most') AS temperature_c_most,
  (SELECT value FROM measurements WHERE pass_id = c.pass_id AND name = 'throttled_ratio') AS throttled_ratio, c.stale_reason
FROM v_ceiling_passes c JOIN measurements m ON m.pass_id = c.pass_id AND m.name GLOB '*_per_s';

-- The floor of an iteration (an epoch, or the launches of a kernel job): its minimum time according to the pass's ceilings. It is
-- the maximum of three terms, without unknown ones (NULL): operations, bytes from memory, and bytes from the last cache. Bytes
-- that the caches can hold are subtracted from the bytes from memory: any bytes if the caches are warm, only written bytes if
-- they are cold. Bytes that the caches above the last one can hold are subtracted from the bytes from the last cache in the same
-- way.
CREATE VIEW v_floors AS
SELECT job, run, pass_id, cache, ceilings_id, floor_ms,
  CASE floor_ms
    WHEN operations_ms THEN printf('%.6g operations in %s at %.6g/s', operations, "precision", operations_per_s)
    WHEN memory_ms THEN printf('%.6g bytes from memory at %.6g/s', memory_bytes, memory_bytes_per_s)
    WHEN cached_ms THEN printf('%.6g bytes from the last cache at %.6g/s', cached_bytes, cached_bytes_per_s) END AS arithmetic,
  CASE WHEN ceilings_id IS NULL THEN 'no ceilings of this device with its driver and clocks yet: run a job of the kind ceilings'
       WHEN floor_ms IS NULL THEN 'the ceilings have no rate for the minimum work of the workload' END AS reason
FROM (
  SELECT *, nullif(max(coalesce(operations_ms, 0), coalesce(memory_ms, 0), coalesce(cached_ms, 0)), 0) AS floor_ms
  FROM (
    SELECT *, operations / operations_per_s * 1000 AS operations_ms, memory_bytes / memory_bytes_per_s * 1000 AS memory_ms,
      cached_bytes / cached_bytes_per_s * 1000 AS cached_ms
    FROM (
      SELECT p.job_id AS job, p.run_id AS run, p.id AS pass_id, c.value AS cache, p.ceilings_id, r.floor_operations AS operations,
        r.floor_precision AS "precision",
        (SELECT max(m.value)
         FROM precision_rates u CROSS JOIN measurements m ON m.pass_id = p.ceilings_id AND m.name = u.name
         WHERE u."precision" = r.floor_precision) AS operations_per_s,
        r.floor_bytes - min(r.floor_bytes,
          coalesce(iif(c.value = 'cold', min(r.floor_written_bytes, d.cache_bytes), d.cache_bytes), r.floor_bytes))
          AS memory_bytes,
        (SELECT max(value) FROM measurements
         WHERE pass_id = p.ceilings_id AND name GLOB 'dram_*_bytes_per_s') AS memory_bytes_per_s,
        r.floor_bytes - min(r.floor_bytes,
          coalesce(iif(c.value = 'cold', min(r.floor_written_bytes, d.private_cache_bytes), d.private_cache_bytes),
                   r.floor_bytes))
          AS cached_bytes,
        (SELECT max(value) FROM measurements
         WHERE pass_id = p.ceilings_id AND name GLOB 'l[23]_*_bytes_per_s') AS cached_bytes_per_s
      FROM passes p JOIN runs r ON r.id = p.run_id JOIN devices d ON d.id = p.device_id
        CROSS JOIN json_each('["cold", "warm"]') c
      WHERE p.ordinal = 0)));

CREATE VIEW v_measurements AS
SELECT p.job_id AS job, p.run_id AS run, r.workload, r.variant, r.engine, j.device, p.finished_at AS at, p.name AS pass, m.name,
  m.value, m.reason
FROM measurements m JOIN passes p ON p.id = m.pass_id JOIN runs r ON r.id = p.run_id JOIN jobs j ON j.id = p.job_id;

CREATE VIEW v_kernels AS
SELECT p.job_id AS job, p.run_id AS run, r.workload, r.variant, r.engine, j.device, p.name AS pass, k.ordinal, k.launch, k.phase,
  k.name, k.launches, k.total_us, k.min_us, k.median_us, k.max_us, k.share_ratio, k.registers_per_thread, k.static_shared_bytes,
  k.dynamic_shared_bytes, k.grid_x, k.grid_y, k.grid_z, k.block_x, k.block_y, k.block_z, k.theoretical_occupancy_ratio, k.reason,
  (SELECT json_group_object(metric, value) FROM kernel_metrics WHERE kernel_id = k.id) AS metrics, k.code_sha256
FROM kernels k JOIN passes p ON p.id = k.pass_id JOIN runs r ON r.id = p.run_id JOIN jobs j ON j.id = p.job_id;

CREATE VIEW v_phases AS
SELECT p.job_id AS job, p.run_id AS run, r.workload, r.variant, r.engine, k.ordinal AS kernel, k.launch, f.position, f.name,
  f.phase, f.steps, f.blocks, f.mean_us, f.min_us, f.max_us, f.share_ratio
FROM phases f JOIN kernels k ON k.id = f.kernel_id JOIN passes p ON p.id = k.pass_id JOIN runs r ON r.id = p.run_id;

CREATE VIEW v_instructions AS
SELECT p.job_id AS job, p.run_id AS run, r.workload, r.variant, k.ordinal AS kernel, k.name, i."offset", i.opcode,
  i.sass, i.file, i.line, i.counts, i.reason
FROM instructions i JOIN kernels k ON k.id = i.kernel_id JOIN passes p ON p.id = k.pass_id JOIN runs r ON r.id = p.run_id;

CREATE VIEW v_series AS
SELECT p.job_id AS job, p.run_id AS run, r.workload, r.variant, k.ordinal AS kernel, k.name, s.name AS series, s.x, s.value
FROM series s JOIN kernels k ON k.id = s.kernel_id JOIN passes p ON p.id = k.pass_id JOIN runs r ON r.id = p.run_id;

CREATE VIEW v_activity AS
SELECT p.job_id AS job, p.run_id AS run, k.name AS kind, n.name, a.start_ns, a.end_ns, a.end_ns - a.start_ns AS duration_ns,
  nullif(a.stream, 0) AS stream, nullif(a.correlation, 0) AS correlation, nullif(a.graph_node, 0) AS graph_node, a.grid_x,
    a.grid_y,
  a.grid_z, a.block_x, a.block_y, a.block_z, a.registers, a.static_shared_bytes, a.dynamic_shared_bytes, a.bytes,
  nullif(a.step, 0) - 1 AS step
FROM activity a JOIN activity_kinds k ON k.kind = a.kind JOIN names n ON n.pass_id = a.pass_id AND n.ordinal = a.name
  JOIN passes p ON p.id = a.pass_id;

