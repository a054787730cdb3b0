-- Computes the shares of the measured roof again, where the ceilings are still stored: bytes count at the bandwidth of their
-- direction. Before, a single written byte made all bytes count at the bandwidth of copies.
DELETE FROM measurements
WHERE name GLOB 'share_*_of_*_ratio' AND pass_id IN (SELECT id FROM passes WHERE ordinal = 0 AND ceilings_id IS NOT NULL);
WITH pass AS (
  SELECT pass.id AS pass_id, pass.ceilings_id, cache_mode.value AS cache, run.floor_bytes AS bytes,
    iif(run.workload = 'source', NULL, run.floor_written_bytes) AS written_bytes, run.floor_operations AS operations,
    run.floor_precision AS "precision", measurement.value AS median_us,
    iif(cache_mode.value = 'warm' AND device_row.cache_bytes >= run.floor_bytes, 'l[23]_', 'dram_') AS memory
  FROM passes pass JOIN runs run ON run.id = pass.run_id JOIN devices device_row ON device_row.id = pass.device_id CROSS
    JOIN json_each('["cold", "warm"]') cache_mode
    JOIN measurements measurement ON measurement.pass_id = pass.id
      AND measurement.name = 'time_' || cache_mode.value || '_us_median' AND measurement.value > 0
  WHERE pass.ordinal = 0 AND pass.ceilings_id IS NOT NULL),
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
GROUP BY pass_id, cache;
PRAGMA user_version = 31;
