-- Rows for a database of version 12: a training job with its three passes, a kernel job that failed, and ceilings.
INSERT INTO sources VALUES ('c0de', '{"code":"__global__ void k() {}"}');
INSERT INTO jobs (id, kind, device, origin, state, request, profile, source, deadline_s, created_ns, started_ns, finished_ns,
  problem_domain, problem_code, problem_message, events, idempotency_key, body_sha256) VALUES
  (1, 'ceilings', 'gpu0', 'daemon', 'completed', '{"kind":"ceilings"}', NULL, NULL, 60, 1000, 2000, 3000, NULL, NULL, NULL, 3,
   NULL, NULL),
  (2, 'train', 'gpu0', 'client', 'completed', '{"kind":"train"}', '{"sections":[],"launch":-1}', NULL, 60, 1700000000123456789,
   1700000001000000000, 1700000002000000000, NULL, NULL, NULL, 5, 'key', 'b0d7'),
  (5, 'source', 'gpu0', 'client', 'failed', '{"kind":"source"}', NULL, 'c0de', 60, 4000, 5000, 6000, 'cuda', 700,
   'an illegal memory access', 3, NULL, NULL);
INSERT INTO runs (id, job_id, ordinal, workload, variant, params, nondefault_params, log, engine, dataset, dataset_sha256,
  deterministic, deterministic_note, "partial", images_per_epoch, steps_per_epoch, parameters, floor_operations, floor_bytes,
  floor_written_bytes, floor_precision) VALUES
  (1, 1, 0, 'ceilings', 'best', '{}', '{}', NULL, 'cuda', NULL, NULL, 1, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (2, 2, 0, 'mnist_cnn', 'fp32', '{"precision":"fp32","batch_size":64,"seed":1,"epochs":2}', '{"epochs":2}', NULL, 'persistent',
   'mnist', 'd161', 1, NULL, 0, 60000, 938, 315146, 1e9, 1e8, 1e7, 'fp32'),
  (3, 2, 1, 'mnist_cnn', 'fp16', '{"precision":"fp16","batch_size":64,"seed":1,"epochs":2}', '{"epochs":2}', NULL, 'persistent',
   'mnist', 'd161', 0, 'atomic additions', 1, 60000, 938, 315146, 1e9, 1e8, 1e7, 'fp16'),
  (7, 5, 0, 'source', 'first', '{}', '{}', 'code.cu(1): warning', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
   NULL, NULL, NULL);
INSERT INTO devices (id, facts, last_ns) VALUES
  (1,
  '{"name":"H200","uuid":"GPU-1","driver":"570.86","sm_clock_max_khz":1980000,"memory_clock_max_khz":3201000,"l2_bytes":6e7}',
   2500),
  (4, '{"name":"CPU","threads":2,"governor":"performance","clock_max_khz":3500000,"cache_bytes":40000000}', 99);
INSERT INTO passes (id, job_id, run_id, ordinal, name, state, reason, started_ns, finished_ns, device_id, ceilings_id,
  git_commit,
  activity_rows, activity_kept) VALUES
  (1, 1, 1, 0, 'timing', 'completed', NULL, 2100, 2900, 1, NULL, '0123456789ab', 0, 0),
  (2, 2, 2, 0, 'timing', 'completed', NULL, 1700000001000000000, 1700000001100000000, 1, 1, '0123456789ab', 0, 0),
  (3, 2, 2, 1, 'activity', 'completed', NULL, 1700000001100000000, 1700000001200000000, 1, NULL, '0123456789ab', 303, 1),
  (4, 2, 2, 2, 'counters', 'completed', NULL, 1700000001200000000, 1700000001300000000, 1, NULL, '0123456789ab', 0, 0),
  (5, 2, 3, 0, 'timing', 'completed', NULL, 1700000001300000000, 1700000001400000000, 1, 1, '0123456789ab', 0, 0),
  (6, 2, 3, 1, 'activity', 'completed', NULL, 1700000001400000000, 1700000001500000000, 1, NULL, '0123456789ab', 12, 1),
  (7, 2, 3, 2, 'counters', 'unavailable', 'no permission', 1700000001500000000, 1700000001600000000, 1, NULL, NULL, 500, 0),
  (12, 5, 7, 0, 'timing', 'unavailable', 'no such kernel', 5000, 6000, NULL, NULL, NULL, 0, 0);
INSERT INTO epochs (pass_id, epoch, warmup, device_ms, host_ms, evaluation_ms, images, train_loss, test_loss,
  test_accuracy_ratio, loss_scale, skipped_steps, sm_clock_before_mhz, throttle_reasons, unavailable, suspect, suspect_reason)
SELECT p.id, e.value, e.value = 0, 100 + e.value, 101.5, 9, 60000, 0.25, 0.125, 0.98, NULL, 0, 1980, '',
  '{"loss_scale":"fp32 does not scale the loss"}', e.value = 1, iif(e.value = 1, 'faster than its floor', NULL)
FROM passes p, json_each('[0, 1, 2]') e WHERE p.id IN (2, 5);
INSERT INTO samples VALUES (5, 'cold', 0, 41.5, 0, NULL), (5, 'cold', 1, NULL, 0, NULL), (5, 'warm', 0, 26, 1, 'throttled');
INSERT INTO measurements VALUES (1, 'fp32_operations_per_s', 5e13, NULL), (1, 'dram_read_bytes_per_s', 4e12, NULL),
  (1, 'l2_read_bytes_per_s', 9e12, NULL), (1, 'sm_clock_least_mhz', 1900, NULL), (2, 'peak_memory_bytes', 4e8, NULL),
  (2, 'launches_per_step', 1, NULL), (3, 'launch_gap_ratio', 0.05, NULL), (5, 'peak_memory_bytes', 3e8, NULL),
  (6, 'launch_gap_ratio', NULL, 'no rows');
INSERT INTO kernels (id, pass_id, ordinal, launch, phase, name, launches, total_us, min_us, median_us, max_us, share_ratio,
  registers_per_thread, static_shared_bytes, dynamic_shared_bytes, grid_x, grid_y, grid_z, block_x, block_y, block_z,
  theoretical_occupancy_ratio, code_sha256, reason) VALUES
  (1, 3, 0, 'conv1', 'forward', 'void conv1<float>(args)', 3, 30, 9, 10, 11, 0.5, 40, 0, 1024, 2, 3, 4, 32, 1, 1, 0.5,
  'c0de', NULL),
  (2, 3, 1, NULL, NULL, 'span', 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
  NULL,
   'no time'),
  (9, 4, 0, 'conv1', 'forward', 'void conv1<float>(args)', 1, 10, 10, 10, 10, 1, 40, 0, 1024, 2, 3, 4, 32, 1, 1, 0.5, 'c0de',
  NULL);
INSERT INTO phases VALUES (1, 0, 'load', 'forward', 32, 128, 1.5, 1, 2.5, 0.75), (1, 1, 'wait', NULL, 32, 128, 0.5, NULL, 1,
  0.25);
INSERT INTO kernel_metrics VALUES (9, 'dram__bytes.sum', 4096, NULL), (9, 'l2_hit_ratio', NULL, 'not offered');
INSERT INTO instructions VALUES (9, 0, 'LDG.E', 'LDG.E R2, [R2.64]', 'relu.cu', 7, '{"inst_executed":64}', NULL),
  (9, 16, NULL, NULL, NULL, NULL, '{}', 'nvdisasm is not installed');
INSERT INTO series VALUES (9, 'sm_active_pct', 0, 12.5), (9, 'sm_active_pct', 1000, NULL);
INSERT INTO names VALUES (3, 0, 'void conv1<float>(args)'), (3, 1, 'cudaLaunchKernel'), (3, 2, 'epoch'), (3, 3, 'memcpy HtoD'),
  (6, 0, 'epoch'), (6, 1, 'load');
-- Kernels of two launch shapes with their calls, copies of several sizes, and an NVTX range over all of them; then phases.
INSERT INTO activity
SELECT 3, 0, i * 1000, 2 * i, i * 1000 + 700 + i, 0, 7, i + 1, i % 3, 0, iif(i % 2, 2, 128), 3, 4, 32, 1, 1, 40, 16, 1024, 0
FROM (WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99) SELECT i FROM n);
INSERT INTO activity
SELECT 3, 4, i * 1000 - 300, 2 * i + 1, i * 1000 - 50, 1, 0, i + 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
FROM (WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99) SELECT i FROM n);
INSERT INTO activity
SELECT 3, 1, i * 1000 - 50, 200 + i, i * 1000 + 50, 3, 9, i + 101, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4096 * (i % 5)
FROM (WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99) SELECT i FROM n);
INSERT INTO activity VALUES (3, 6, -5000, 300, 123456789012, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
  (3, 0, 5000, 301, 5000, 0, 7, 4294967295, 4294967295, 0, 4294967295, 3, 4, 32, 1, 1, 40, 16, 1024, 0),
  (3, 3, 5000, 302, 5000, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9223372036854775807);
INSERT INTO activity
SELECT 6, 9, i * 10, i, i * 10 + 9, i % 2, 7, 3, 0, i / 2 + 1, 2, 1, 1, 32, 1, 1, 40, 0, 0, 0
FROM (WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 11) SELECT i FROM n);
INSERT INTO activity_spans SELECT pass_id, kind, count(*), max(end_ns - start_ns) FROM activity GROUP BY pass_id, kind;
INSERT INTO events (job_id, seq, at_ns, type, data)
SELECT jobs.id, e.value, 1000, 'state', '{"state":"queued"}' FROM jobs, json_each('[1, 2, 3]') e;
INSERT INTO tokens VALUES ('ha5h', 'laptop', 1000);
