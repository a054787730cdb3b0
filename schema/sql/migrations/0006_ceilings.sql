-- What devices can do at best, and the least time of a run that follows from it.

-- Of the facts: which device it is, and what its ceilings depend on. The CPU has no UUID and no driver.
ALTER TABLE devices ADD COLUMN identity TEXT AS (coalesce(facts ->> '$.uuid', (facts ->> '$.name') || ', ' || (facts ->> '$.threads') || ' threads'));
ALTER TABLE devices ADD COLUMN driver TEXT AS (coalesce(nullif(facts ->> '$.driver', ''), facts ->> '$.driver_cuda'));
ALTER TABLE devices ADD COLUMN sm_clock_max_mhz REAL AS ((facts ->> '$.sm_clock_max_khz') / 1000.0);
ALTER TABLE devices ADD COLUMN memory_clock_max_mhz REAL AS ((facts ->> '$.memory_clock_max_khz') / 1000.0);
ALTER TABLE devices ADD COLUMN cache_bytes REAL AS (coalesce(facts ->> '$.l2_bytes', facts ->> '$.cache_bytes')); -- all levels that outlive a launch
ALTER TABLE devices ADD COLUMN private_cache_bytes REAL AS (coalesce(facts ->> '$.private_cache_bytes', 0)); -- of them the levels before the last
ALTER TABLE devices ADD COLUMN last_ns INTEGER NOT NULL DEFAULT 0; -- when it was last seen with these facts
CREATE INDEX devices_by_identity ON devices (identity, last_ns);

ALTER TABLE runs ADD COLUMN floor_written_bytes REAL; -- the part of floor_bytes that a cache may keep
ALTER TABLE runs ADD COLUMN floor_precision TEXT; -- of floor_operations
CREATE INDEX runs_by_workload ON runs (workload);

ALTER TABLE passes ADD COLUMN ceilings_id INTEGER REFERENCES passes ON DELETE SET NULL; -- the pass of a ceilings job that its times are held against
CREATE INDEX passes_by_ceilings ON passes (ceilings_id) WHERE ceilings_id IS NOT NULL;

ALTER TABLE samples ADD COLUMN suspect INTEGER NOT NULL DEFAULT 0 CHECK (suspect IN (0, 1)); -- faster than its floor: not to be believed
ALTER TABLE samples ADD COLUMN suspect_reason TEXT;
CREATE INDEX samples_suspect ON samples (pass_id) WHERE suspect = 1;

CREATE TABLE precision_rates ( -- which rates may do operations of a precision: the fastest of them bounds it
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

-- The newest ceilings of each device and driver. stale_reason: the device was seen with another driver or other clocks since.
CREATE VIEW v_ceiling_passes AS
SELECT p.job_id AS job, p.run_id AS run, p.id AS pass_id, j.device, d.name AS device_name, d.identity AS device_identity, d.driver,
  p.finished_at AS at, unixepoch() - p.finished_ns / 1000000000 AS age_s, p.git_commit, d.sm_clock_max_mhz, d.memory_clock_max_mhz,
  CASE WHEN now.driver IS NOT d.driver THEN printf('measured with driver %s, and the device has %s now', d.driver, now.driver)
       WHEN now.sm_clock_max_mhz IS NOT d.sm_clock_max_mhz OR now.memory_clock_max_mhz IS NOT d.memory_clock_max_mhz
       THEN printf('measured with clocks of at most %g and %g MHz, and the device has %g and %g MHz now', d.sm_clock_max_mhz,
                   d.memory_clock_max_mhz, now.sm_clock_max_mhz, now.memory_clock_max_mhz) END AS stale_reason
FROM runs r JOIN passes p ON p.run_id = r.id AND p.ordinal = 0 AND p.state = 'completed'
  JOIN jobs j ON j.id = p.job_id JOIN devices d ON d.id = p.device_id
  JOIN devices now ON now.id = (SELECT id FROM devices WHERE identity = d.identity ORDER BY last_ns DESC LIMIT 1)
WHERE r.workload = 'ceilings' AND r.id = (
  SELECT nr.id FROM runs nr CROSS JOIN passes np ON np.run_id = nr.id AND np.ordinal = 0 AND np.state = 'completed'
    CROSS JOIN devices nd ON nd.id = np.device_id
  WHERE nr.workload = 'ceilings' AND nd.identity = d.identity AND nd.driver IS d.driver ORDER BY nr.id DESC LIMIT 1);

-- One row for each rate.
CREATE VIEW v_ceilings AS
SELECT c.job, c.run, c.device, c.device_name, c.device_identity, c.driver, c.at, c.age_s, c.git_commit, m.name, m.value, m.reason,
  c.sm_clock_max_mhz, c.memory_clock_max_mhz,
  (SELECT value FROM measurements WHERE pass_id = c.pass_id AND name = 'sm_clock_least_mhz') AS sm_clock_least_mhz,
  (SELECT value FROM measurements WHERE pass_id = c.pass_id AND name = 'temperature_c_most') AS temperature_c_most,
  (SELECT value FROM measurements WHERE pass_id = c.pass_id AND name = 'throttled_ratio') AS throttled_ratio, c.stale_reason
FROM v_ceiling_passes c JOIN measurements m ON m.pass_id = c.pass_id AND m.name GLOB '*_per_s';

-- The least time of an iteration (an epoch; the launches of a kernel job), by the ceilings that its timing pass is held against. What a
-- cache may hold need not come from memory: once the caches are warm any bytes, when they are cold those that are written. The same
-- holds between the last cache and those before it. NULL terms are not known, and bound nothing.
CREATE VIEW v_floors AS
SELECT job, run, pass_id, cache, ceilings_id, floor_ms,
  CASE floor_ms
    WHEN operations_ms THEN printf('%.6g operations in %s at %.6g/s', operations, "precision", operations_per_s)
    WHEN memory_ms THEN printf('%.6g bytes from memory at %.6g/s', memory_bytes, memory_bytes_per_s)
    WHEN cached_ms THEN printf('%.6g bytes from the last cache at %.6g/s', cached_bytes, cached_bytes_per_s) END AS arithmetic,
  CASE WHEN ceilings_id IS NULL THEN 'no ceilings of this device with its driver and clocks yet: run a job of the kind ceilings'
       WHEN floor_ms IS NULL THEN 'the ceilings hold no rate for what the workload must at least do' END AS reason
FROM (
  SELECT *, nullif(max(coalesce(operations_ms, 0), coalesce(memory_ms, 0), coalesce(cached_ms, 0)), 0) AS floor_ms
  FROM (
    SELECT *, operations / operations_per_s * 1000 AS operations_ms, memory_bytes / memory_bytes_per_s * 1000 AS memory_ms,
      cached_bytes / cached_bytes_per_s * 1000 AS cached_ms
    FROM (
      SELECT p.job_id AS job, p.run_id AS run, p.id AS pass_id, c.value AS cache, p.ceilings_id, r.floor_operations AS operations,
        r.floor_precision AS "precision",
        (SELECT max(m.value) FROM precision_rates u CROSS JOIN measurements m ON m.pass_id = p.ceilings_id AND m.name = u.name
         WHERE u."precision" = r.floor_precision) AS operations_per_s,
        r.floor_bytes - min(r.floor_bytes,
          coalesce(iif(c.value = 'cold', min(r.floor_written_bytes, d.cache_bytes), d.cache_bytes), r.floor_bytes)) AS memory_bytes,
        (SELECT max(value) FROM measurements WHERE pass_id = p.ceilings_id AND name GLOB 'dram_*_bytes_per_s') AS memory_bytes_per_s,
        r.floor_bytes - min(r.floor_bytes,
          coalesce(iif(c.value = 'cold', min(r.floor_written_bytes, d.private_cache_bytes), d.private_cache_bytes), r.floor_bytes))
          AS cached_bytes,
        (SELECT max(value) FROM measurements WHERE pass_id = p.ceilings_id AND name GLOB 'l[23]_*_bytes_per_s') AS cached_bytes_per_s
      FROM passes p JOIN runs r ON r.id = p.run_id JOIN devices d ON d.id = p.device_id
        CROSS JOIN json_each('["cold", "warm"]') c
      WHERE p.ordinal = 0)));

DROP VIEW v_samples;
CREATE VIEW v_samples AS
SELECT p.job_id AS job, p.run_id AS run, r.workload, r.variant, r.params ->> '$.dtype' AS dtype, r.params -> '$.shape' AS shape, r.engine,
  j.device, p.finished_at AS at, p.name AS pass, s.mode, s.ordinal, s.device_us, s.suspect, s.suspect_reason
FROM samples s JOIN passes p ON p.id = s.pass_id JOIN runs r ON r.id = p.run_id JOIN jobs j ON j.id = p.job_id;

DROP VIEW v_runs;
-- One row a run. Times are over the timing pass's epochs without warm-up; accuracy is the last epoch's. What is NULL has its reason in
-- unavailable, a JSON object {column: reason}.
CREATE VIEW v_runs AS
SELECT job, run, job_state, workload, variant, "precision", batch_size, seed, engine, dataset, "partial", deterministic, device,
  device_name, git_commit, at, epochs, epoch_ms_median, epoch_ms_min, images_per_epoch * 1000 / epoch_ms_median AS images_per_s,
  peak_memory_bytes, test_accuracy_ratio, train_loss, test_loss, launches_per_step, launch_gap_ratio, suspect, suspect_reason,
  json_patch('{}', json_object( -- a merge patch drops what is null
    'epoch_ms_median', iif(epoch_ms_median IS NULL, timing_reason, NULL),
    'epoch_ms_min', iif(epoch_ms_min IS NULL, timing_reason, NULL),
    'images_per_s', iif(epoch_ms_median IS NULL OR images_per_epoch IS NULL, timing_reason, NULL),
    'peak_memory_bytes', iif(peak_memory_bytes IS NULL, coalesce(peak_memory_reason, timing_reason), NULL),
    'test_accuracy_ratio', iif(test_accuracy_ratio IS NULL, coalesce(epoch_unavailable ->> '$.test_accuracy_ratio', timing_reason), NULL),
    'launches_per_step', iif(launches_per_step IS NULL, coalesce(launches_per_step_reason, timing_reason), NULL),
    'launch_gap_ratio', iif(launch_gap_ratio IS NULL, coalesce(launch_gap_reason, activity_reason), NULL))) AS unavailable
FROM (
  SELECT r.job_id AS job, r.id AS run, j.state AS job_state, r.workload, r.variant, r."precision", r.batch_size, r.seed, r.engine,
    r.dataset, r."partial", r.deterministic, j.device, d.name AS device_name, t.git_commit, t.finished_at AS at,
    (SELECT count(*) FROM epochs e WHERE e.pass_id = t.id AND e.warmup = 0) AS epochs,
    (SELECT avg(epoch_ms) FROM (
       SELECT e.epoch_ms, row_number() OVER (ORDER BY e.epoch_ms) AS place, count(*) OVER () AS n
       FROM epochs e WHERE e.pass_id = t.id AND e.warmup = 0 AND e.epoch_ms IS NOT NULL)
     WHERE place IN ((n + 1) / 2, (n + 2) / 2)) AS epoch_ms_median,
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

PRAGMA user_version = 6;
