-- Stores the share of a measured roof that the median times of pass :pass reach with a cold and with a warm cache. :pass is the
-- timing pass of a kernel job; timing passes have the ordinal 0. There are two candidates for the roof: the bytes at the measured
-- bandwidths of memory (of the last-level cache if the caches are warm and contain all bytes), and the operations at the highest
-- arithmetic rate of the precision. The roof is the candidate that requires the longer time.
-- As many bytes as are both read and written count at the bandwidth of copies, and the other bytes at that of reads or of writes.
-- The written bytes of posted code are only an upper bound, so its bytes count at the highest bandwidth of that memory.
-- The name of the measurement contains the name of the roof: share_cold_of_dram_copy_ratio. If the roof has two bandwidths, it has
-- the name of the one with more bytes, copies if they are equal. A floor in v_floors can be shorter: it assumes that written bytes
-- stay in the caches, so that no correct result is marked as suspect.
WITH pass AS (
  SELECT pass.id AS pass_id, pass.ceilings_id, cache_mode.value AS cache, run.floor_bytes AS bytes,
    iif(run.workload = 'source', NULL, run.floor_written_bytes) AS written_bytes, run.floor_operations AS operations,
    run.floor_precision AS "precision", measurement.value AS median_us,
    iif(cache_mode.value = 'warm' AND device_row.cache_bytes >= run.floor_bytes, 'l[23]_', 'dram_') AS memory
  FROM passes pass JOIN runs run ON run.id = pass.run_id JOIN devices device_row ON device_row.id = pass.device_id CROSS
    JOIN json_each('["cold", "warm"]') cache_mode
    JOIN measurements measurement ON measurement.pass_id = pass.id
      AND measurement.name = 'time_' || cache_mode.value || '_us_median' AND measurement.value > 0
  WHERE pass.id = :pass AND pass.ordinal = 0),
part AS ( -- the bytes at one bandwidth
  SELECT pass.*, bandwidth.value AS bandwidth, CASE bandwidth.value
      WHEN 'copy' THEN 2 * min(bytes - written_bytes, written_bytes)
      WHEN 'read' THEN bytes - 2 * written_bytes
      WHEN 'write' THEN 2 * written_bytes - bytes
      ELSE iif(written_bytes IS NULL, bytes, 0) END AS part_bytes
  FROM pass CROSS JOIN json_each('["copy", "read", "write", "*"]') bandwidth),
timed_part AS (
  SELECT part.pass_id, cache, median_us, part_bytes / max(value) * 1e6 AS part_us,
    iif(part_bytes > bytes / 2 OR (bandwidth = 'copy' AND part_bytes = bytes / 2), name, NULL) AS roof_name
  FROM part LEFT JOIN measurements measurement ON measurement.pass_id = part.ceilings_id
    AND measurement.name GLOB memory || bandwidth || '_bytes_per_s' AND measurement.value > 0
  WHERE part_bytes > 0
  GROUP BY part.pass_id, cache, bandwidth)
INSERT INTO measurements (pass_id, name, value, reason)
SELECT pass_id, 'share_' || cache || '_of_' || roof || '_ratio', max(roof_us) / median_us, NULL FROM (
  SELECT pass_id, cache, median_us, replace(max(roof_name), '_bytes_per_s', '') AS roof, sum(part_us) AS roof_us
  FROM timed_part GROUP BY pass_id, cache HAVING count(part_us) = count(*)
  UNION ALL
  SELECT pass_id, cache, median_us, replace(name, '_per_s', ''), operations / max(value) * 1e6
  FROM (SELECT pass.*, measurement.name, measurement.value FROM pass CROSS JOIN precision_rates rate
    ON rate."precision" = pass."precision"
        CROSS JOIN measurements measurement ON measurement.pass_id = pass.ceilings_id AND measurement.name = rate.name
          AND measurement.value > 0 WHERE operations > 0)
  GROUP BY pass_id, cache)
GROUP BY pass_id, cache
