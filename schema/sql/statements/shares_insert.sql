-- Stores the share of a measured roof that the median times of pass :pass reach with a cold and with a warm cache. :pass is the
-- timing pass of a kernel job; timing passes have the ordinal 0. There are two candidates for the roof: the measured bandwidth of
-- memory (of the last-level cache if the caches are warm and contain all bytes), and the highest arithmetic rate of the precision.
-- The bandwidth is that of reads if the run writes nothing, that of writes if it only writes, else that of copies. The roof is the
-- candidate that requires the longer time. The name of the measurement contains the name of the roof:
-- share_cold_of_dram_copy_ratio. A floor in v_floors can be shorter: it assumes that written bytes stay in the caches, so that no
-- correct result is marked as suspect.
WITH pass AS (
  SELECT pass.id AS pass_id, pass.ceilings_id, cache_mode.value AS cache, run.floor_bytes AS bytes, run.floor_operations
    AS operations,
    run.floor_precision AS "precision", measurement.value AS median_us,
    iif(cache_mode.value = 'warm' AND device_row.cache_bytes >= run.floor_bytes, 'l[23]_', 'dram_')
      || CASE run.floor_written_bytes WHEN 0 THEN 'read' WHEN run.floor_bytes THEN 'write' ELSE 'copy' END
      || '_bytes_per_s' AS bandwidth_pattern
  FROM passes pass JOIN runs run ON run.id = pass.run_id JOIN devices device_row ON device_row.id = pass.device_id CROSS
    JOIN json_each('["cold", "warm"]') cache_mode
    JOIN measurements measurement ON measurement.pass_id = pass.id
      AND measurement.name = 'time_' || cache_mode.value || '_us_median' AND measurement.value > 0
  WHERE pass.id = :pass AND pass.ordinal = 0)
INSERT INTO measurements (pass_id, name, value, reason)
SELECT pass_id, 'share_' || cache || '_of_' || roof || '_ratio', max(roof_us) / median_us, NULL FROM (
  SELECT pass_id, cache, median_us, replace(name, '_bytes_per_s', '') AS roof, bytes / max(value) * 1e6 AS roof_us
  FROM (SELECT pass.*, measurement.name, measurement.value FROM pass CROSS JOIN measurements measurement
        ON measurement.pass_id = pass.ceilings_id AND measurement.name GLOB pass.bandwidth_pattern AND measurement.value > 0
          WHERE bytes > 0)
  GROUP BY pass_id, cache
  UNION ALL
  SELECT pass_id, cache, median_us, replace(name, '_per_s', ''), operations / max(value) * 1e6
  FROM (SELECT pass.*, measurement.name, measurement.value FROM pass CROSS JOIN precision_rates rate
    ON rate."precision" = pass."precision"
        CROSS JOIN measurements measurement ON measurement.pass_id = pass.ceilings_id AND measurement.name = rate.name
          AND measurement.value > 0 WHERE operations > 0)
  GROUP BY pass_id, cache)
GROUP BY pass_id, cache
