-- :pass. The share of a measured roof that a kernel job reaches with a cold and with a warm cache, over the median time: bytes
-- over the bandwidth of the same direction, of the last cache if the caches are warm and hold all bytes; operations over the
-- fastest rate of their precision. Uses the roof that requires the longer time, and puts its name into that of the measurement:
-- share_cold_of_dram_copy_ratio. Floors (v_floors) differ: they assume that written bytes stay in the caches, to avoid false
-- alarms.
WITH pass AS (
  SELECT p.id AS pass_id, p.ceilings_id, c.value AS cache, r.floor_bytes AS bytes, r.floor_operations AS operations,
    r.floor_precision AS "precision", m.value AS median_us,
    iif(c.value = 'warm' AND d.cache_bytes >= r.floor_bytes, 'l[23]_', 'dram_')
      || CASE r.floor_written_bytes WHEN 0 THEN 'read' WHEN r.floor_bytes THEN 'write' ELSE 'copy' END
      || '_bytes_per_s' AS bandwidth
  FROM passes p JOIN runs r ON r.id = p.run_id JOIN devices d ON d.id = p.device_id CROSS JOIN json_each('["cold", "warm"]') c
    JOIN measurements m ON m.pass_id = p.id AND m.name = 'time_' || c.value || '_us_median' AND m.value > 0
  WHERE p.id = :pass AND p.ordinal = 0)
INSERT INTO measurements (pass_id, name, value, reason)
SELECT pass_id, 'share_' || cache || '_of_' || roof || '_ratio', max(roof_us) / median_us, NULL FROM (
  SELECT pass_id, cache, median_us, replace(name, '_bytes_per_s', '') AS roof, bytes / max(value) * 1e6 AS roof_us
  FROM (SELECT pass.*, m.name, m.value FROM pass CROSS JOIN measurements m
        ON m.pass_id = pass.ceilings_id AND m.name GLOB pass.bandwidth AND m.value > 0 WHERE bytes > 0)
  GROUP BY pass_id, cache
  UNION ALL
  SELECT pass_id, cache, median_us, replace(name, '_per_s', ''), operations / max(value) * 1e6
  FROM (SELECT pass.*, m.name, m.value FROM pass CROSS JOIN precision_rates u ON u."precision" = pass."precision"
        CROSS JOIN measurements m ON m.pass_id = pass.ceilings_id AND m.name = u.name AND m.value > 0 WHERE operations > 0)
  GROUP BY pass_id, cache)
GROUP BY pass_id, cache
