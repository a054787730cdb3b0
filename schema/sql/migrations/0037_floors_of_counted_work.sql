-- Corrects the minimum work of runs for which it was counted wrongly, and removes what was computed from it. The store then computes
-- the floors, the shares and the suspect times again (daemon/store/summaries.c).
-- The floor of an epoch counted 60,000 images, or max_images if that is fewer. The bytes of a convolution, also as a member of a
-- sequence, counted pixels of x that no filter position covers and taps of filters that are outside the image at every position.
-- Bytes that were counted so are corrected. They become unknown if such a sequence has other kernels too, because the bytes of these
-- can't be computed here, and so it is not known how the convolutions were counted.
CREATE TEMP TABLE corrected_runs AS
WITH training AS (
  SELECT *, iif(params ->> '$.max_images' BETWEEN 1 AND 59999, params ->> '$.max_images', 60000) AS counted_images
  FROM runs WHERE workload = 'mnist_cnn' AND images_per_epoch IS NOT NULL),
members AS (
  SELECT id, 0 AS member, workload AS kernel, params AS value FROM runs WHERE workload GLOB 'conv*' AND floor_bytes IS NOT NULL
  UNION ALL
  SELECT run.id, member.key, member.value ->> '$.kernel', member.value FROM runs run, json_each(run.params, '$.kernels') member
  WHERE run.workload = 'sequence' AND run.floor_bytes IS NOT NULL),
sizes AS (
  SELECT id, member, kernel, value ->> '$.shape.images' AS images, value ->> '$.shape.height' AS height,
    value ->> '$.shape.width' AS width, value ->> '$.shape.channels' AS channels, value ->> '$.shape.filters' AS filters,
    value ->> '$.shape.kernel' AS filter_side, value ->> '$.shape.stride' AS stride, value ->> '$.shape.padding' AS padding,
    CASE value ->> '$.dtype' WHEN 'fp64' THEN 8 WHEN 'fp16' THEN 2 WHEN 'bf16' THEN 2 ELSE 4 END AS element_bytes
  FROM members WHERE kernel IN ('conv', 'conv_dgrad', 'conv_wgrad')),
axes AS ( -- two rows for each convolution
  SELECT *, (side + 2 * padding - filter_side) / stride + 1 AS positions
  FROM (SELECT *, height AS side FROM sizes UNION ALL SELECT *, width FROM sizes)),
covered AS (
  SELECT *,
    iif(stride > filter_side, positions * filter_side - padding - max(0, (positions - 1) * stride - padding + filter_side - side),
      min(side, (positions - 1) * stride - padding + filter_side)) AS covered,
    -- Taps that are inside the image at the first position, and taps before it that a later position moves inside.
    min(filter_side - padding, side) + min(padding, (positions - 1) * stride) / stride * min(stride, side)
      + max(0, min(padding, (positions - 1) * stride) % stride - max(0, stride - side)) AS taps
  FROM axes),
convolutions AS ( -- min(value) * max(value) is the product of the values of both axes
  SELECT id, element_bytes, images * channels * min(side) * max(side) AS x,
    filters * channels * filter_side * filter_side AS w, images * filters * min(positions) * max(positions) AS y,
    iif(kernel = 'conv_dgrad', 0, images * channels * (min(side) * max(side) - min(covered) * max(covered))) AS uncovered,
    iif(kernel = 'conv_wgrad', 0, filters * channels * (filter_side * filter_side - min(taps) * max(taps))) AS unused
  FROM covered GROUP BY id, member),
convolution_bytes AS (
  SELECT id, count(*) AS convolutions, sum((x + w + y) * element_bytes) AS counted,
    sum((uncovered + unused) * element_bytes) AS excess
  FROM convolutions GROUP BY id)
SELECT id, floor_bytes AS counted_bytes, floor_bytes + (images_per_epoch - counted_images) * 785 AS bytes,
  floor_operations * images_per_epoch / counted_images AS operations
FROM training WHERE images_per_epoch <> counted_images AND floor_bytes = counted_images * 785 + 24 * parameters
UNION ALL
SELECT run.id, floor_bytes, iif(floor_bytes = counted, floor_bytes - excess, NULL), floor_operations
FROM convolution_bytes JOIN runs run ON run.id = convolution_bytes.id
WHERE excess > 0 AND (floor_bytes = counted
  OR floor_bytes > counted AND convolutions < (SELECT count(*) FROM members WHERE members.id = run.id));

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
