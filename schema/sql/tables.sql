-- The tables of a new database. A change of a table is made here and in a migration, schema/sql/migrations/NNNN_*.sql, which
-- upgrades existing databases. Times are integers, UTC in ns since 1970. A generated column *_at is the time *_ns as RFC 3339
-- text. A REAL that is NULL was not measured; its row or its pass contains the reason.

CREATE TABLE sources ( -- posted code, each text once; deleted with the last job that refers to it
  sha256 TEXT PRIMARY KEY,
  text TEXT NOT NULL CHECK (json_valid(text)) -- code or binary, arguments, options, variants
) STRICT;

CREATE TABLE jobs (
  id INTEGER PRIMARY KEY AUTOINCREMENT, -- ids of deleted jobs are not reused
  kind TEXT NOT NULL,
  device TEXT NOT NULL,
  -- 'daemon': the daemon itself has submitted the job, to measure ceilings again.
  origin TEXT NOT NULL DEFAULT 'client' CHECK (origin IN ('client', 'daemon')),
  state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'completed', 'failed', 'cancelled', 'interrupted')),
  request TEXT NOT NULL CHECK (json_valid(request)), -- the request with all defaults filled in
  -- Options of the counters pass (rl_profile_options); NULL: the job has no counters pass.
  profile TEXT CHECK (profile IS NULL OR json_valid(profile)),
  source TEXT REFERENCES sources (sha256),
  deadline_s INTEGER NOT NULL,
  created_ns INTEGER NOT NULL,
  started_ns INTEGER,
  finished_ns INTEGER,
  problem_domain TEXT,
  problem_code INTEGER,
  problem_message TEXT,
  worker_deaths INTEGER NOT NULL DEFAULT 0, -- how often the worker died during the job's passes
  daemon_deaths INTEGER NOT NULL DEFAULT 0, -- how often the daemon or the host crashed during the job's passes
  events INTEGER NOT NULL DEFAULT 0, -- number of events so far, which is also the seq of the last event
  events_kept INTEGER NOT NULL DEFAULT 1 CHECK (events_kept IN (0, 1)), -- 0: retention has deleted the events
  idempotency_key TEXT UNIQUE,
  body_sha256 TEXT,
  -- The job's item in the list of jobs. NULL from the job's start to its end, because the item changes then.
  listing TEXT CHECK (listing IS NULL OR json_valid(listing)),
  created_at TEXT AS (
    strftime('%Y-%m-%dT%H:%M:%S', created_ns / 1000000000, 'unixepoch') || printf('.%09dZ', created_ns % 1000000000)),
  started_at TEXT AS (
    strftime('%Y-%m-%dT%H:%M:%S', started_ns / 1000000000, 'unixepoch') || printf('.%09dZ', started_ns % 1000000000)),
  finished_at TEXT AS (
    strftime('%Y-%m-%dT%H:%M:%S', finished_ns / 1000000000, 'unixepoch') || printf('.%09dZ', finished_ns % 1000000000))
) STRICT;
-- One index for each combination of the filters kind, state and device in the list of jobs. Within equal values, an index is in
-- the order of the ids.
CREATE INDEX jobs_by_kind ON jobs (kind);
CREATE INDEX jobs_by_state ON jobs (state);
CREATE INDEX jobs_by_device ON jobs (device);
CREATE INDEX jobs_by_kind_state ON jobs (kind, state);
CREATE INDEX jobs_by_kind_device ON jobs (kind, device);
CREATE INDEX jobs_by_state_device ON jobs (state, device);
CREATE INDEX jobs_by_kind_state_device ON jobs (kind, state, device);
CREATE INDEX jobs_by_end ON jobs (finished_ns) WHERE finished_ns IS NOT NULL;
CREATE INDEX jobs_with_events ON jobs (finished_ns) WHERE events_kept = 1;
CREATE INDEX jobs_by_source ON jobs (source) WHERE source IS NOT NULL;

CREATE TABLE runs (
  id INTEGER PRIMARY KEY,
  job_id INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  workload TEXT NOT NULL,
  variant TEXT NOT NULL,
  params TEXT NOT NULL CHECK (json_valid(params)), -- the parameters with all defaults filled in
  -- The parameters that differ from their defaults, with sorted keys. Runs with equal text are repetitions of each other, even if
  -- a newer version of rooflined, which has more parameters, has executed one of them.
  nondefault_params TEXT NOT NULL CHECK (json_valid(nondefault_params)),
  log TEXT, -- log of the compiler of posted code, or of an import
  -- The worker reports the columns below; they are stored with the run's first committed pass.
  engine TEXT,
  dataset TEXT,
  dataset_sha256 TEXT,
  deterministic INTEGER CHECK (deterministic IN (0, 1)),
  deterministic_note TEXT,
  partial INTEGER CHECK (partial IN (0, 1)), -- 1: the run trained on fewer images than the data set has
  images_per_epoch INTEGER,
  steps_per_epoch INTEGER,
  parameters INTEGER,
  floor_operations REAL, -- minimum work of one iteration: of an epoch, or of the launches of a kernel job
  floor_bytes REAL,
  floor_written_bytes REAL, -- bytes of floor_bytes that are written
  floor_precision TEXT, -- precision of floor_operations
  "precision" TEXT AS (params ->> '$.precision'),
  batch_size INTEGER AS (params ->> '$.batch_size'),
  seed INTEGER AS (params ->> '$.seed'),
  UNIQUE (job_id, ordinal)
) STRICT;
CREATE INDEX runs_by_workload ON runs (workload);

CREATE TABLE devices ( -- one row for each distinct set of properties that workers reported
  id INTEGER PRIMARY KEY,
  properties TEXT NOT NULL UNIQUE CHECK (json_valid(properties)),
  last_ns INTEGER NOT NULL DEFAULT 0, -- time at which a worker last reported these properties
  name TEXT AS (properties ->> '$.name'),
  uuid TEXT AS (properties ->> '$.uuid'),
  -- The identity of the device, and the properties on which its ceilings depend (driver and clocks). A CPU has no UUID and no
  -- driver.
  identity TEXT AS (coalesce(properties ->> '$.uuid', (properties ->> '$.name') || ', ' || (properties ->> '$.threads') || ' threads')),
  driver TEXT AS (coalesce(nullif(properties ->> '$.driver', ''), properties ->> '$.driver_cuda')),
  sm_clock_max_mhz REAL AS ((properties ->> '$.sm_clock_max_khz') / 1000.0),
  memory_clock_max_mhz REAL AS ((properties ->> '$.memory_clock_max_khz') / 1000.0),
  clock_setting TEXT AS ( -- governor and frequency limit of a CPU; NULL: the system does not report them
    nullif(properties ->> '$.governor', '') || ', at most ' || round((properties ->> '$.clock_max_khz') / 1000.0) || ' MHz'),
  -- The total size of the cache levels that keep data between launches; private_cache_bytes does not include the last level.
  cache_bytes REAL AS (coalesce(properties ->> '$.l2_bytes', properties ->> '$.cache_bytes')),
  private_cache_bytes REAL AS (coalesce(properties ->> '$.private_cache_bytes', 0))
) STRICT;
CREATE INDEX devices_by_identity ON devices (identity, last_ns);

CREATE TABLE passes (
  id INTEGER PRIMARY KEY,
  job_id INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE,
  run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  ordinal INTEGER NOT NULL, -- 0: timing, 1: activity, 2: counters
  name TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'running', 'completed', 'unavailable')),
  reason TEXT, -- why the pass is unavailable; if the pass is pending again: how its worker died
  started_ns INTEGER,
  finished_ns INTEGER,
  device_id INTEGER REFERENCES devices,
  ceilings_id INTEGER REFERENCES passes ON DELETE SET NULL, -- timing pass of the ceilings from which the floors are computed
  git_commit TEXT, -- commit of the worker
  activity_rows INTEGER NOT NULL DEFAULT 0, -- number of recorded activity rows
  activity_kept INTEGER NOT NULL DEFAULT 0 CHECK (activity_kept IN (0, 1)), -- 0: queries return no activity rows of the pass, because there are none or because they are hidden
  -- 1: the tables of activity rows contain rows of the pass. If activity_kept is 0 then, the pass is not committed, or retention
  -- is deleting its rows.
  activity_stored INTEGER NOT NULL DEFAULT 0 CHECK (activity_stored IN (0, 1)),
  measures_ceilings INTEGER NOT NULL DEFAULT 0 CHECK (measures_ceilings IN (0, 1)), -- 1: the timing pass of a ceilings job
  suspect_cause TEXT, -- likely cause of times below their floor, and what to do; NULL: there are none, or they were stored by an older version
  started_at TEXT AS (
    strftime('%Y-%m-%dT%H:%M:%S', started_ns / 1000000000, 'unixepoch') || printf('.%09dZ', started_ns % 1000000000)),
  finished_at TEXT AS (
    strftime('%Y-%m-%dT%H:%M:%S', finished_ns / 1000000000, 'unixepoch') || printf('.%09dZ', finished_ns % 1000000000)),
  UNIQUE (run_id, ordinal)
) STRICT;
CREATE INDEX passes_by_job ON passes (job_id, ordinal, run_id);
CREATE INDEX passes_by_end ON passes (finished_ns) WHERE finished_ns IS NOT NULL;
CREATE INDEX passes_with_activity ON passes (finished_ns) WHERE activity_kept = 1;
CREATE INDEX passes_with_hidden_activity ON passes (id) WHERE activity_stored = 1 AND activity_kept = 0;
CREATE INDEX passes_with_ceilings ON passes (device_id, run_id) WHERE measures_ceilings = 1 AND state = 'completed';
CREATE INDEX passes_by_ceilings ON passes (ceilings_id) WHERE ceilings_id IS NOT NULL;

CREATE TABLE epochs (
  pass_id INTEGER NOT NULL REFERENCES passes ON DELETE CASCADE,
  epoch INTEGER NOT NULL, -- number of the epoch, from 0 over warm-up and measured epochs
  warmup INTEGER NOT NULL CHECK (warmup IN (0, 1)),
  device_ms REAL,
  host_ms REAL,
  evaluation_ms REAL,
  images REAL,
  train_loss REAL,
  test_loss REAL,
  test_accuracy_ratio REAL,
  loss_scale REAL,
  skipped_steps REAL, -- steps of this epoch that were skipped: a gradient was not finite or too large
  sm_clock_before_mhz REAL,
  sm_clock_after_mhz REAL,
  memory_clock_mhz REAL,
  temperature_c REAL,
  power_w REAL,
  throttle_reasons TEXT NOT NULL,
  unavailable TEXT CHECK (json_valid(unavailable)), -- {field: reason}
  suspect INTEGER NOT NULL DEFAULT 0 CHECK (suspect IN (0, 1)), -- 1: the epoch is shorter than its floor, so its time or the ceilings are wrong
  suspect_reason TEXT,
  epoch_ms REAL AS (coalesce(device_ms, host_ms)), -- device time if it was measured
  PRIMARY KEY (pass_id, epoch)
) STRICT, WITHOUT ROWID;

CREATE TABLE samples ( -- measured times of launches (kernel, layer and source jobs)
  pass_id INTEGER NOT NULL REFERENCES passes ON DELETE CASCADE,
  mode TEXT NOT NULL CHECK (mode IN ('cold', 'warm')), -- cold: the caches are full of other data when the launch begins
  ordinal INTEGER NOT NULL, -- number of the sample, from 0 within the mode, in time order
  device_us REAL, -- warm: the mean of back-to-back launches
  -- 1: the sample is shorter than its floor, or the device was throttled.
  suspect INTEGER NOT NULL DEFAULT 0 CHECK (suspect IN (0, 1)),
  suspect_reason TEXT,
  PRIMARY KEY (pass_id, mode, ordinal)
) STRICT, WITHOUT ROWID;
CREATE INDEX samples_suspect ON samples (pass_id) WHERE suspect = 1;

CREATE TABLE measurements (
  pass_id INTEGER NOT NULL REFERENCES passes ON DELETE CASCADE,
  name TEXT NOT NULL, -- name, which ends with the unit
  value REAL,
  reason TEXT,
  PRIMARY KEY (pass_id, name)
) STRICT, WITHOUT ROWID;

-- The summary of each run that has a committed pass. The view v_run_summaries computes it, and the store inserts it when a pass
-- is committed. A column *_reason is the reason for which a number is NULL, if the worker has reported one.
CREATE TABLE run_summaries (
  run_id INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
  epochs INTEGER NOT NULL, -- number of epochs without warm-up
  epoch_ms_median REAL,
  epoch_ms_min REAL,
  images_per_s REAL,
  peak_memory_bytes REAL,
  peak_memory_reason TEXT,
  test_accuracy_ratio REAL,
  test_accuracy_reason TEXT,
  train_loss REAL,
  test_loss REAL,
  launches_per_step REAL,
  launches_per_step_reason TEXT,
  launch_gap_ratio REAL,
  launch_gap_reason TEXT,
  time_cold_us_median REAL,
  time_cold_reason TEXT,
  time_warm_us_median REAL,
  time_warm_reason TEXT,
  suspect INTEGER NOT NULL CHECK (suspect IN (0, 1)), -- 1: an epoch or a sample is suspect
  suspect_reason TEXT,
  cold_suspect_reason TEXT,
  warm_suspect_reason TEXT
) STRICT;

CREATE TABLE configurations ( -- runs of the same configuration are repetitions of each other
  id INTEGER PRIMARY KEY,
  workload TEXT NOT NULL,
  variant TEXT NOT NULL,
  nondefault_params TEXT NOT NULL,
  device TEXT NOT NULL,
  UNIQUE (workload, variant, nondefault_params, device)
) STRICT;

CREATE TABLE history_series ( -- the sets of metrics that passes of a workload have measured on a device
  id INTEGER PRIMARY KEY,
  workload TEXT NOT NULL,
  device TEXT NOT NULL,
  metrics TEXT NOT NULL CHECK (json_valid(metrics)), -- sorted names
  UNIQUE (workload, device, metrics)
) STRICT;

CREATE TABLE history_metrics ( -- for each metric, the series that contain it
  metric TEXT NOT NULL,
  series_id INTEGER NOT NULL,
  PRIMARY KEY (metric, series_id)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER history_series_metrics AFTER INSERT ON history_series BEGIN
  INSERT INTO history_metrics (metric, series_id) SELECT value, new.id FROM json_each(new.metrics);
END;
CREATE TRIGGER history_series_deleted AFTER DELETE ON history_series BEGIN
  DELETE FROM history_metrics WHERE (metric, series_id) IN (SELECT value, old.id FROM json_each(old.metrics));
END;

-- One row for each completed pass that has measured at least one metric. The view v_history computes the row, and the store
-- inserts it when the pass is committed. All passes of a series have the same metrics, so a query finds the newest values of a
-- metric by index.
CREATE TABLE history (
  pass_id INTEGER PRIMARY KEY REFERENCES passes ON DELETE CASCADE,
  run_id INTEGER NOT NULL,
  series_id INTEGER NOT NULL REFERENCES history_series,
  configuration_id INTEGER NOT NULL REFERENCES configurations,
  finished_ns INTEGER NOT NULL,
  point TEXT NOT NULL CHECK (json_valid(point)) -- the item that GET /history returns, without the metric and its value
) STRICT;
CREATE INDEX history_by_series ON history (series_id, finished_ns);
CREATE INDEX history_by_configuration ON history (configuration_id, series_id, finished_ns);
CREATE TRIGGER history_configuration AFTER DELETE ON history BEGIN
  DELETE FROM configurations
  WHERE id = old.configuration_id AND NOT EXISTS (SELECT 1 FROM history WHERE configuration_id = old.configuration_id);
END;
CREATE TRIGGER history_deleted AFTER DELETE ON history BEGIN
  DELETE FROM history_series
  WHERE id = old.series_id AND NOT EXISTS (SELECT 1 FROM history WHERE series_id = old.series_id);
END;
CREATE TRIGGER history_moved AFTER UPDATE OF series_id ON history WHEN new.series_id <> old.series_id BEGIN
  DELETE FROM history_series
  WHERE id = old.series_id AND NOT EXISTS (SELECT 1 FROM history WHERE series_id = old.series_id);
END;

-- A row of an activity pass describes a kernel and all its executions in an epoch. A row of a counters pass describes one kernel
-- of one step.
CREATE TABLE kernels (
  id INTEGER PRIMARY KEY,
  -- NULL until the pass is committed, so that queries do not return the kernels of an uncommitted pass.
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
  grid_x INTEGER, grid_y INTEGER, grid_z INTEGER, -- size of the grid in blocks; NULL on a CPU
  block_x INTEGER, block_y INTEGER, block_z INTEGER,
  theoretical_occupancy_ratio REAL,
  code_sha256 TEXT, -- SHA-256 of the machine code
  reason TEXT,
  stored_for INTEGER REFERENCES passes ON DELETE CASCADE, -- id of the pass until it is committed, then NULL
  UNIQUE (pass_id, ordinal),
  CHECK ((pass_id IS NULL) <> (stored_for IS NULL))
) STRICT;
CREATE UNIQUE INDEX kernels_not_committed ON kernels (stored_for, ordinal) WHERE stored_for IS NOT NULL;

CREATE TABLE phases ( -- phases of kernels that execute whole steps and record the times of their phases themselves
  kernel_id INTEGER NOT NULL REFERENCES kernels ON DELETE CASCADE,
  position INTEGER NOT NULL, -- position of the phase in a step, from 0
  name TEXT NOT NULL,
  phase TEXT, -- kind of phase, as in kernels.phase
  steps INTEGER NOT NULL, -- number of steps that were timed
  blocks INTEGER NOT NULL, -- number of blocks that were timed
  mean_us REAL, -- mean time of the phase in one step of one block; a block that skips the phase counts as 0
  min_us REAL,
  max_us REAL,
  share_ratio REAL, -- share of the step's time
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
  "offset" INTEGER NOT NULL, -- offset from the start of the function in bytes
  opcode TEXT, -- opcode with modifiers; opcode and sass are NULL if the code could not be disassembled
  sass TEXT,
  file TEXT, -- source file; NULL: the code was compiled without line numbers
  line INTEGER,
  counts TEXT NOT NULL CHECK (json_valid(counts)), -- {metric: number}
  reason TEXT,
  PRIMARY KEY (kernel_id, "offset")
) STRICT, WITHOUT ROWID;

CREATE TABLE series ( -- the points of curves that describe a kernel, such as a timeline
  kernel_id INTEGER NOT NULL REFERENCES kernels ON DELETE CASCADE,
  name TEXT NOT NULL,
  x REAL NOT NULL, -- in timelines: time in ns since the kernel began
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

CREATE TABLE memory_kinds (kind INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT; -- kinds of memory of copies, as CUPTI numbers them
INSERT INTO memory_kinds (kind, name) VALUES (1, 'pageable'), (2, 'pinned'), (3, 'device'), (4, 'array'), (5, 'managed'),
  (6, 'device_static'), (7, 'managed_static');

CREATE TABLE activity_dictionary ( -- values that many activity rows of a pass share
  pass_id INTEGER NOT NULL REFERENCES passes ON DELETE CASCADE,
  entry INTEGER NOT NULL, -- number of the entry, from 0 within the pass
  name INTEGER NOT NULL, -- ordinal in names
  stream INTEGER NOT NULL, -- 0 means none in this column, in graph_node, and in the columns from process on
  graph_node INTEGER NOT NULL,
  grid_x INTEGER NOT NULL, grid_y INTEGER NOT NULL, grid_z INTEGER NOT NULL,
  block_x INTEGER NOT NULL, block_y INTEGER NOT NULL, block_z INTEGER NOT NULL,
  registers INTEGER NOT NULL,
  static_shared_bytes INTEGER NOT NULL,
  dynamic_shared_bytes INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  process INTEGER NOT NULL DEFAULT 0, -- process and thread of host activity
  thread INTEGER NOT NULL DEFAULT 0,
  device INTEGER NOT NULL DEFAULT 0, -- 1 + CUDA's number of the device
  context INTEGER NOT NULL DEFAULT 0, -- CUDA context of device work
  source_memory INTEGER NOT NULL DEFAULT 0, -- kind in memory_kinds
  destination_memory INTEGER NOT NULL DEFAULT 0,
  call_stream INTEGER NOT NULL DEFAULT 0, -- the stream in the arguments of an API call about events or synchronisation
  event INTEGER NOT NULL DEFAULT 0, -- the event that an API call records or waits for
  -- Sum of 1: registers, 2: static_shared_bytes, 4: dynamic_shared_bytes, 8: bytes, for the values that are unknown, and 0 here.
  -- 16 (with 2): dynamic_shared_bytes is the sum of static and dynamic shared memory
  unknown_values INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (pass_id, entry),
  FOREIGN KEY (pass_id, name) REFERENCES names
) STRICT, WITHOUT ROWID;

-- A group contains the rows of a pass with the same kind, similar durations (below 1,024 ns, below 4 times that, below 16 times
-- that ...) and the same first_level. A row that overlaps a time window starts at most longest_ns before the window. Therefore
-- the rows of a group that overlap a window are in one range of the primary key of the table activity. The ranges of all groups
-- contain few other rows, even if one row is as long as the trace.
CREATE TABLE activity_groups (
  pass_id INTEGER NOT NULL REFERENCES passes ON DELETE CASCADE,
  activity_group INTEGER NOT NULL, -- 512 times (first_level + 1), plus 16 times the class of durations, plus the kind
  kind INTEGER NOT NULL REFERENCES activity_kinds,
  activity_rows INTEGER NOT NULL,
  longest_ns INTEGER NOT NULL,
  -- The rows are counted in intervals of this level and of all higher levels whose intervals are longer than the rows; NULL: in
  -- no interval.
  first_level INTEGER,
  PRIMARY KEY (pass_id, activity_group)
) STRICT, WITHOUT ROWID;

-- Sums over the activity rows that start in an interval of time, so that a timeline of a window with many rows can be drawn
-- without reading them. The intervals of a level contain only rows that are shorter than the intervals. A batch of rows is added
-- to a level if the batch has at least 1,024 rows, and at least 8 rows per interval of the level.
CREATE TABLE activity_intervals (
  pass_id INTEGER NOT NULL REFERENCES passes ON DELETE CASCADE,
  level INTEGER NOT NULL, -- an interval of level n lasts 1,024 times 4 to the power of n, in ns
  start_ns INTEGER NOT NULL, -- start of the interval, a multiple of its duration
  kind INTEGER NOT NULL REFERENCES activity_kinds,
  device INTEGER NOT NULL, -- device, stream, thread: as in activity_dictionary; 0: none
  stream INTEGER NOT NULL,
  thread INTEGER NOT NULL,
  activity_rows INTEGER NOT NULL,
  busy_ns INTEGER NOT NULL, -- sum of the rows' durations
  longest_ns INTEGER NOT NULL,
  name INTEGER NOT NULL, -- name of the longest row, an ordinal in names
  PRIMARY KEY (pass_id, level, start_ns, kind, device, stream, thread)
) STRICT, WITHOUT ROWID;

-- The activity rows, at most 40 bytes each, which retention deletes before other data. Queries return only rows of passes whose
-- activity_kept is 1.
CREATE TABLE activity (
  pass_id INTEGER NOT NULL,
  activity_group INTEGER NOT NULL,
  start_ns INTEGER NOT NULL, -- start in ns since the trace began
  ordinal INTEGER NOT NULL, -- number of the row, from 0 within the pass
  duration_ns INTEGER NOT NULL,
  entry INTEGER NOT NULL, -- entry of activity_dictionary
  correlation INTEGER NOT NULL, -- 0: none
  step INTEGER NOT NULL, -- number of the step to which a phase belongs, from 1; 0: none
  PRIMARY KEY (pass_id, activity_group, start_ns, ordinal),
  FOREIGN KEY (pass_id, activity_group) REFERENCES activity_groups ON DELETE CASCADE,
  FOREIGN KEY (pass_id, entry) REFERENCES activity_dictionary
) STRICT, WITHOUT ROWID;

-- The measured rates at which a device can execute operations of a precision; the highest rate determines their floor.
CREATE TABLE precision_rates (
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
  seq INTEGER NOT NULL, -- number of the event, from 1 within the job
  at_ns INTEGER NOT NULL,
  type TEXT NOT NULL,
  data TEXT NOT NULL CHECK (json_valid(data)),
  at TEXT AS (strftime('%Y-%m-%dT%H:%M:%S', at_ns / 1000000000, 'unixepoch') || printf('.%09dZ', at_ns % 1000000000)),
  PRIMARY KEY (job_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE suite_runs ( -- runs of regression suites
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  suite TEXT NOT NULL,
  definition TEXT NOT NULL CHECK (json_valid(definition)), -- the definition with all defaults filled in
  definition_sha256 TEXT NOT NULL,
  -- The hash of each job: {name of the job: hash of its runs' workloads, variants and parameters}.
  jobs_sha256 TEXT NOT NULL CHECK (json_valid(jobs_sha256)),
  device TEXT NOT NULL,
  against TEXT, -- name of the baseline; NULL: the rolling baseline
  against_run_id INTEGER, -- the suite run of the named baseline
  -- Ids of the suite runs whose values are the baseline; NULL: the run is not judged yet.
  baseline_runs TEXT CHECK (baseline_runs IS NULL OR json_valid(baseline_runs)),
  state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'completed', 'failed', 'cancelled')),
  verdict TEXT CHECK (verdict IN ('faster', 'same', 'slower', 'inconclusive', 'incomparable')),
  reason TEXT, -- reason of the verdict, or why the run failed
  quarantine_reason TEXT, -- why the values of the run can't be trusted; NULL: they can be
  created_ns INTEGER NOT NULL,
  started_ns INTEGER,
  finished_ns INTEGER,
  device_name TEXT, -- this and the next three columns: reported by the workers of the run's first job
  driver TEXT,
  clock_setting TEXT,
  git_commit TEXT,
  planned_s REAL, -- duration estimated when the run was requested; NULL: unknown
  planned_basis TEXT, -- basis of the estimate: "runs" "jobs" "similar_jobs" "time_budget"
  planned_jobs INTEGER NOT NULL,
  idempotency_key TEXT UNIQUE,
  body_sha256 TEXT,
  listing TEXT CHECK (listing IS NULL OR json_valid(listing)), -- the item in lists of suite runs
  events INTEGER NOT NULL DEFAULT 0, -- number of events so far, which is the seq of the last one
  events_kept INTEGER NOT NULL DEFAULT 1 CHECK (events_kept IN (0, 1)), -- 0: deleted by retention
  -- If the run measures its baseline itself: the members that replace members of the jobs' requests in the baseline's jobs. Each
  -- block then measures the baseline's jobs and the jobs of the definition, in random order. NULL: earlier runs are the baseline.
  against_request TEXT CHECK (against_request IS NULL OR json_valid(against_request)),
  order_seed INTEGER, -- seed of the order of baseline and current jobs in the blocks
  created_at TEXT AS (
    strftime('%Y-%m-%dT%H:%M:%S', created_ns / 1000000000, 'unixepoch') || printf('.%09dZ', created_ns % 1000000000)),
  started_at TEXT AS (
    strftime('%Y-%m-%dT%H:%M:%S', started_ns / 1000000000, 'unixepoch') || printf('.%09dZ', started_ns % 1000000000)),
  finished_at TEXT AS (
    strftime('%Y-%m-%dT%H:%M:%S', finished_ns / 1000000000, 'unixepoch') || printf('.%09dZ', finished_ns % 1000000000))
) STRICT;
CREATE INDEX suite_runs_by_suite ON suite_runs (suite);
CREATE INDEX suite_runs_by_success ON suite_runs (suite, device) WHERE state = 'completed';
CREATE INDEX suite_runs_comparable ON suite_runs (suite, device)
  WHERE state = 'completed' AND quarantine_reason IS NULL AND against_request IS NULL;
CREATE INDEX suite_runs_by_state ON suite_runs (state, finished_ns);
CREATE INDEX suite_runs_with_events ON suite_runs (finished_ns) WHERE events_kept = 1;

CREATE TABLE suite_jobs ( -- the jobs of a suite run; kept when retention deletes the jobs
  suite_run_id INTEGER NOT NULL REFERENCES suite_runs ON DELETE CASCADE,
  ordinal INTEGER NOT NULL, -- number of the job in the order of submission, from 0
  role TEXT NOT NULL CHECK (role IN ('canary_before', 'block', 'baseline', 'confirmation', 'baseline_confirmation',
    'canary_after', 'profile', 'baseline_profile')), -- baseline...: jobs that measure the baseline
  block INTEGER NOT NULL, -- number of the block, from 0 within the role
  job_name TEXT NOT NULL, -- name of the job in the definition; "ceilings" for a canary
  job_id INTEGER REFERENCES jobs ON DELETE SET NULL,
  state TEXT NOT NULL CHECK (state IN ('submitted', 'completed', 'failed', 'cancelled')),
  drop_reason TEXT, -- why the values of the job are not used; NULL: they are used
  busy_s REAL, -- time from the job's start to its end
  PRIMARY KEY (suite_run_id, ordinal),
  UNIQUE (suite_run_id, role, block, job_name)
) STRICT, WITHOUT ROWID;
CREATE INDEX suite_jobs_by_job ON suite_jobs (job_id) WHERE job_id IS NOT NULL;

CREATE TABLE suite_values ( -- the values from which verdicts are computed
  suite_run_id INTEGER NOT NULL REFERENCES suite_runs ON DELETE CASCADE,
  metric TEXT NOT NULL, -- "train/fp16/epoch_ms_median": job, variant, metric
  role TEXT NOT NULL CHECK (role IN ('block', 'baseline', 'confirmation', 'baseline_confirmation')),
  block INTEGER NOT NULL,
  value REAL,
  cycles REAL, -- SM cycles: the time multiplied by the SM clock that was read nearest to it
  dropped_reason TEXT, -- why the value is not used; NULL: it is used
  other_processes TEXT, -- processes that used the device while the value was measured: "pid 4711 (1200 MiB)"; NULL: none, or unknown
  PRIMARY KEY (suite_run_id, metric, role, block)
) STRICT, WITHOUT ROWID;

CREATE TABLE suite_events (
  suite_run_id INTEGER NOT NULL REFERENCES suite_runs ON DELETE CASCADE,
  seq INTEGER NOT NULL, -- number of the event, from 1 within the suite run
  at_ns INTEGER NOT NULL,
  type TEXT NOT NULL,
  data TEXT NOT NULL CHECK (json_valid(data)),
  at TEXT AS (strftime('%Y-%m-%dT%H:%M:%S', at_ns / 1000000000, 'unixepoch') || printf('.%09dZ', at_ns % 1000000000)),
  PRIMARY KEY (suite_run_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE suite_verdicts (
  suite_run_id INTEGER NOT NULL REFERENCES suite_runs ON DELETE CASCADE,
  metric TEXT NOT NULL,
  verdict TEXT NOT NULL CHECK (verdict IN ('faster', 'same', 'slower', 'inconclusive', 'incomparable')),
  method_version INTEGER NOT NULL,
  judgement TEXT NOT NULL CHECK (json_valid(judgement)), -- all numbers of the judgement
  causes TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(causes)),
  PRIMARY KEY (suite_run_id, metric)
) STRICT, WITHOUT ROWID;

CREATE TABLE baselines ( -- named baselines: suite runs with whose values later runs are compared; immutable
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  suite TEXT NOT NULL,
  name TEXT NOT NULL,
  suite_run_id INTEGER NOT NULL REFERENCES suite_runs,
  created_ns INTEGER NOT NULL,
  created_at TEXT AS (
    strftime('%Y-%m-%dT%H:%M:%S', created_ns / 1000000000, 'unixepoch') || printf('.%09dZ', created_ns % 1000000000)),
  UNIQUE (suite, name)
) STRICT;
CREATE INDEX baselines_by_run ON baselines (suite_run_id);
CREATE TRIGGER baselines_immutable BEFORE UPDATE ON baselines BEGIN
  SELECT raise(ABORT, 'a baseline is immutable');
END;

CREATE TABLE webhook_events ( -- the newest 1000 events that the webhook delivers
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  event_id TEXT NOT NULL UNIQUE, -- value of the header webhook-id in each attempt
  suite_run_id INTEGER NOT NULL REFERENCES suite_runs ON DELETE CASCADE,
  type TEXT NOT NULL CHECK (type IN ('regression.confirmed', 'regression.fixed')),
  body TEXT NOT NULL CHECK (json_valid(body)), -- body of the request
  created_ns INTEGER NOT NULL,
  state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'given_up')),
  attempts INTEGER NOT NULL DEFAULT 0,
  next_attempt_ns INTEGER, -- time of the next attempt; NULL: the event is not pending
  ended_ns INTEGER, -- time at which the event was delivered or given up
  last_error TEXT -- error of the last attempt; NULL: the attempt did not fail
) STRICT;
CREATE INDEX webhook_events_by_state ON webhook_events (state, next_attempt_ns);
CREATE INDEX webhook_events_by_run ON webhook_events (suite_run_id);

CREATE TABLE tokens (
  hash TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  created_ns INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

PRAGMA application_id = 1919905638; -- "roof"
PRAGMA user_version = 38; -- the number of the last migration
