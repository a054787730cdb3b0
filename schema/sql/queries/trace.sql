-- :job :run :from :to :limit: rows as of timeline.sql, each as a trace event. Before the first of a run stands what names its process,
-- before the first of a lane what names its thread.
WITH shown AS (
  SELECT p.run_id AS run, p.device_id, k.name AS kind, n.name, a.start_ns, a.end_ns, a.stream, a.correlation, a.graph_node, a.step, a.ordinal,
    CASE WHEN a.stream > 0 THEN 'stream ' || a.stream WHEN k.name IN ('runtime', 'driver') THEN 'calls' ELSE k.name END AS lane,
    CASE WHEN a.stream > 0 THEN a.stream ELSE 2000000000 + iif(k.name = 'driver', (SELECT kind FROM activity_kinds WHERE name = 'runtime'), a.kind) END AS thread,
    iif(a.grid_x = 0, NULL, printf('%d×%d×%d', a.grid_x, a.grid_y, a.grid_z)) AS grid,
    iif(a.block_x = 0, NULL, printf('%d×%d×%d', a.block_x, a.block_y, a.block_z)) AS block,
    iif(a.grid_x = 0, NULL, a.registers) AS registers, iif(a.grid_x = 0, NULL, a.static_shared_bytes) AS static_shared_bytes,
    iif(a.grid_x = 0, NULL, a.dynamic_shared_bytes) AS dynamic_shared_bytes, iif(k.name IN ('memcpy', 'memset', 'memory'), a.bytes, NULL) AS bytes
  FROM passes p
    CROSS JOIN activity_spans s ON s.pass_id = p.id
    CROSS JOIN activity a ON a.pass_id = s.pass_id AND a.kind = s.kind
      AND a.start_ns >= coalesce(:from, 0) - s.longest_ns AND a.start_ns < coalesce(:to, 9223372036854775807)
      AND (a.end_ns > coalesce(:from, 0) OR a.start_ns >= coalesce(:from, 0))
    JOIN activity_kinds k ON k.kind = a.kind
    JOIN names n ON n.pass_id = a.pass_id AND n.ordinal = a.name
  WHERE p.job_id = :job AND (:run IS NULL OR p.run_id = :run)
  ORDER BY p.run_id, a.start_ns, a.end_ns DESC, a.ordinal LIMIT coalesce(:limit, 1000))
SELECT
  iif(row_number() OVER (PARTITION BY run ORDER BY start_ns, end_ns DESC, ordinal) = 1, (
    SELECT json_object('name', 'process_name', 'ph', 'M', 'pid', run, 'tid', 0, 'args', json_object('name', printf('%s, %s %s, run %d',
      coalesce(d.facts ->> '$.name', j.device), r.workload, r.variant, r.id)))
    FROM runs r JOIN jobs j ON j.id = r.job_id LEFT JOIN devices d ON d.id = device_id WHERE r.id = run) || ',', '')
  || iif(row_number() OVER (PARTITION BY run, thread ORDER BY start_ns, end_ns DESC, ordinal) = 1,
    json_object('name', 'thread_name', 'ph', 'M', 'pid', run, 'tid', thread, 'args', json_object('name', lane)) || ',', '')
  || json_object('name', name, 'cat', kind, 'ph', 'X', 'ts', start_ns / 1000.0, 'dur', (end_ns - start_ns) / 1000.0, 'pid', run, 'tid', thread,
    'args', json_patch('{}', json_object('correlation', nullif(correlation, 0), 'graph_node', nullif(graph_node, 0), 'step', nullif(step, 0) - 1,
      'grid', grid, 'block', block, 'registers', registers, 'static_shared_bytes', static_shared_bytes,
      'dynamic_shared_bytes', dynamic_shared_bytes, 'bytes', bytes)))
FROM shown ORDER BY run, start_ns, end_ns DESC, ordinal
