-- :job :run :from :to :limit: rows as of timeline.sql, each as a trace event. Events of a thread lie apart or within each other, where no
-- more than two overlap: what overlaps one before it, as kernels of a stream do by some ticks, turns to a thread beside, and the next that
-- does turns back. Before a thread's first event stands what names it, the one beside and its process.
WITH shown AS (
  SELECT p.run_id AS run, p.id AS pass_id, a.kind, a.start_ns, a.ordinal, a.end_ns,
    iif(a.stream > 0, a.stream, 1000000000 + iif(k.name = 'driver', (SELECT kind FROM activity_kinds WHERE name = 'runtime'), k.kind)) AS thread
  FROM passes p
    CROSS JOIN activity_spans s ON s.pass_id = p.id
    CROSS JOIN activity a ON a.pass_id = s.pass_id AND a.kind = s.kind
      AND a.start_ns >= coalesce(:from, 0) - s.longest_ns AND a.start_ns < coalesce(:to, 9223372036854775807)
      AND (a.end_ns > coalesce(:from, 0) OR a.start_ns >= coalesce(:from, 0))
    JOIN activity_kinds k ON k.kind = a.kind
  WHERE p.job_id = :job AND (:run IS NULL OR p.run_id = :run)
  ORDER BY p.run_id, a.start_ns, a.end_ns DESC, a.ordinal LIMIT coalesce(:limit, 1000)),
after AS ( -- busy_ns: until when the thread is busy with what began before
  SELECT *, max(end_ns) OVER (PARTITION BY run, thread ORDER BY start_ns, end_ns DESC, ordinal
                              ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS busy_ns
  FROM shown),
turned AS (
  SELECT *, count(*) FILTER (WHERE start_ns < busy_ns AND end_ns > busy_ns) OVER (PARTITION BY run, thread ORDER BY start_ns, end_ns DESC, ordinal) % 2 AS turn
  FROM after)
SELECT
  iif(busy_ns IS NULL, (
    SELECT json_object('name', 'process_name', 'ph', 'M', 'pid', run, 'tid', 0, 'args', json_object('name', printf('%s, %s %s, run %d',
      coalesce(d.facts ->> '$.name', j.device), r.workload, r.variant, r.id)))
    FROM runs r JOIN jobs j ON j.id = r.job_id JOIN passes p ON p.id = t.pass_id LEFT JOIN devices d ON d.id = p.device_id WHERE r.id = run) || ',', '')
  || iif(busy_ns IS NULL, (
    SELECT group_concat(json_object('name', 'thread_name', 'ph', 'M', 'pid', run, 'tid', thread + 500000000 * value, 'args', json_object('name',
      CASE WHEN a.stream > 0 THEN 'stream ' || a.stream WHEN k.name IN ('runtime', 'driver') THEN 'calls' ELSE k.name END
      || iif(value, ', overlapping', '')))) FROM json_each('[0, 1]')) || ',', '')
  || json_object('name', n.name, 'cat', k.name, 'ph', 'X', 'ts', t.start_ns / 1000.0, 'dur', (t.end_ns - t.start_ns) / 1000.0, 'pid', run,
    'tid', thread + 500000000 * turn, 'args', json_patch('{}', json_object(
      'correlation', nullif(a.correlation, 0), 'graph_node', nullif(a.graph_node, 0), 'step', nullif(a.step, 0) - 1,
      'grid', iif(a.grid_x = 0, NULL, printf('%d×%d×%d', a.grid_x, a.grid_y, a.grid_z)),
      'block', iif(a.block_x = 0, NULL, printf('%d×%d×%d', a.block_x, a.block_y, a.block_z)),
      'registers', iif(a.grid_x = 0, NULL, a.registers), 'static_shared_bytes', iif(a.grid_x = 0, NULL, a.static_shared_bytes),
      'dynamic_shared_bytes', iif(a.grid_x = 0, NULL, a.dynamic_shared_bytes), 'bytes', iif(k.name IN ('memcpy', 'memset', 'memory'), a.bytes, NULL))))
FROM (SELECT * FROM turned ORDER BY run, start_ns, end_ns DESC, ordinal LIMIT coalesce(:limit, 1000)) t
  CROSS JOIN activity a ON a.pass_id = t.pass_id AND a.kind = t.kind AND a.start_ns = t.start_ns AND a.ordinal = t.ordinal
  CROSS JOIN activity_kinds k ON k.kind = a.kind
  CROSS JOIN names n ON n.pass_id = a.pass_id AND n.ordinal = a.name
