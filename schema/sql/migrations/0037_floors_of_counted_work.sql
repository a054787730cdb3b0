-- Corrects the minimum work of runs for which it was counted wrongly, and removes what was computed from it. The store then computes
-- the floors, the shares and the suspect times again (daemon/store/summaries.c).
-- The floor of an epoch counted 60,000 images, or max_images if that is fewer. The bytes of a convolution counted pixels of x that no
-- filter position covers. Bytes that can't be computed from the run become unknown.
CREATE TEMP TABLE corrected_runs AS
WITH training AS (
  SELECT *, iif(params ->> '$.max_images' BETWEEN 1 AND 59999, params ->> '$.max_images', 60000) AS counted_images
  FROM runs WHERE workload = 'mnist_cnn' AND images_per_epoch IS NOT NULL),
sizes AS (
  SELECT id, workload, floor_bytes, floor_operations, floor_written_bytes, params ->> '$.shape.images' AS images,
    params ->> '$.shape.height' AS height, params ->> '$.shape.width' AS width, params ->> '$.shape.channels' AS channels,
    params ->> '$.shape.filters' AS filters, params ->> '$.shape.kernel' AS kernel, params ->> '$.shape.stride' AS stride,
    params ->> '$.shape.padding' AS padding
  FROM runs WHERE workload IN ('conv', 'conv_dgrad', 'conv_wgrad') AND floor_bytes IS NOT NULL),
positions AS ( -- numbers of positions of a filter along both axes
  SELECT *, (height + 2 * padding - kernel) / stride + 1 AS rows, (width + 2 * padding - kernel) / stride + 1 AS columns
  FROM sizes),
covered AS (
  SELECT *, images * height * width * channels AS x, filters * kernel * kernel * channels AS w,
    images * rows * columns * filters AS y,
    iif(stride > kernel, rows * kernel - padding - max(0, (rows - 1) * stride - padding + kernel - height),
      min(height, (rows - 1) * stride - padding + kernel)) AS covered_rows,
    iif(stride > kernel, columns * kernel - padding - max(0, (columns - 1) * stride - padding + kernel - width),
      min(width, (columns - 1) * stride - padding + kernel)) AS covered_columns,
    -- every tap of a filter is inside an image at some position
    kernel <= min(height, width) + padding AND stride <= min(height, width)
      AND (padding + stride - 1) / stride < min(rows, columns) AS uses_all_taps
  FROM positions),
convolution AS (
  SELECT *, floor_written_bytes / CASE workload WHEN 'conv' THEN y WHEN 'conv_dgrad' THEN x ELSE w END AS element_bytes,
    iif(workload = 'conv_dgrad', 0, x - images * covered_rows * covered_columns * channels) AS uncovered
  FROM covered)
SELECT id, floor_bytes AS counted_bytes, floor_bytes + (images_per_epoch - counted_images) * 785 AS bytes,
  floor_operations * images_per_epoch / counted_images AS operations
FROM training WHERE images_per_epoch <> counted_images AND floor_bytes = counted_images * 785 + 24 * parameters
UNION ALL
SELECT id, floor_bytes, iif(uses_all_taps, floor_bytes - uncovered * element_bytes, NULL), floor_operations
FROM convolution WHERE floor_bytes = (x + w + y) * element_bytes AND (uncovered > 0 OR NOT uses_all_taps)
UNION ALL
SELECT id, floor_bytes, NULL, floor_operations
FROM runs WHERE workload = 'sequence' AND floor_bytes IS NOT NULL AND EXISTS (
  SELECT 1 FROM json_each(params, '$.kernels') member
  WHERE member.value ->> '$.kernel' GLOB 'conv*' AND member.value ->> '$.shape.stride' > 1);

UPDATE runs SET floor_bytes = corrected.bytes, floor_operations = corrected.operations
FROM corrected_runs corrected WHERE corrected.id = runs.id;
CREATE TEMP TABLE corrected_passes AS
SELECT pass.id, corrected.bytes / corrected.counted_bytes AS bytes_ratio
FROM corrected_runs corrected JOIN passes pass ON pass.run_id = corrected.id AND pass.ordinal = 0;
UPDATE measurements SET value = NULL, reason = 'stored before the minimum work was corrected'
WHERE name IN ('floor_ms', 'floor_cold_us', 'floor_warm_us') AND pass_id IN (SELECT id FROM corrected_passes);
UPDATE measurements SET value = value * bytes_ratio, reason = iif(bytes_ratio IS NULL, 'the compulsory bytes are unknown', reason)
FROM corrected_passes corrected WHERE corrected.id = pass_id AND name = 'achieved_bytes_per_s';
DELETE FROM measurements WHERE name GLOB 'share_*_of_*_ratio' AND pass_id IN (SELECT id FROM corrected_passes);
UPDATE epochs SET suspect = 0, suspect_reason = NULL
WHERE pass_id IN (SELECT id FROM corrected_passes) AND suspect_reason GLOB '* is faster than its floor of *';
UPDATE samples SET suspect = 0, suspect_reason = NULL
WHERE pass_id IN (SELECT id FROM corrected_passes) AND suspect_reason GLOB '* is faster than its floor of *';
DROP TABLE corrected_passes;
DROP TABLE corrected_runs;
PRAGMA user_version = 37;
