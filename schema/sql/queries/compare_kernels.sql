-- :a :b; columns: pair of kernels, numbers of a's and of b's. Kernels of the counters passes: the n-th of a launch in one run belongs to the n-th of
-- that launch in the other; two runs of one kernel each are compared whatever their launches are called.
WITH counted AS (
    SELECT k.id, p.run_id AS run, k.ordinal, k.code_sha256,
      coalesce(k.launch, k.name) AS launched, count(*) OVER (PARTITION BY p.run_id) = 1 AS alone,
      row_number() OVER (PARTITION BY p.run_id, coalesce(k.launch, k.name) ORDER BY k.ordinal) AS place,
      json_object('ordinal', k.ordinal, 'name', k.name, 'launch', k.launch, 'code_sha256', k.code_sha256) AS kernel
    FROM kernels k JOIN passes p ON p.id = k.pass_id
    WHERE p.run_id IN (:a, :b) AND p.name = 'counters'),
  pairs AS ( -- LIMIT: put in order here, before the numbers are read
    SELECT a.id AS a, b.id AS b, json_object(
        'a', json(coalesce(a.kernel, 'null')), 'b', json(coalesce(b.kernel, 'null')),
        'same_code', json(CASE a.code_sha256 = b.code_sha256 WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'null' END)) AS pair
    FROM (SELECT * FROM counted WHERE run = :a) a FULL JOIN (SELECT * FROM counted WHERE run = :b) b
      ON b.place = a.place AND (b.launched = a.launched OR (a.alone AND b.alone))
    ORDER BY coalesce(a.ordinal, b.ordinal), a.ordinal IS NULL LIMIT -1)
SELECT pair,
  (SELECT json_group_array(json_array(m.metric, m.value, m.reason)) FROM kernel_metrics m WHERE m.kernel_id = pairs.a),
  (SELECT json_group_array(json_array(m.metric, m.value, m.reason)) FROM kernel_metrics m WHERE m.kernel_id = pairs.b)
FROM pairs
