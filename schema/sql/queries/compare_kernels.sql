-- :a :b :kernel_a :kernel_b; columns: pair of kernels, numbers of a's and of b's. Kernels of the counters passes: the n-th of a launch and name in
-- one run belongs to the n-th of that launch and name in the other; of what is left the n-th of a launch to the n-th of that launch, and two that are
-- alone, whatever they are called. With an ordinal only the pair that has it; with both they are the pair.
WITH sides (side, run, kernel) AS (VALUES ('a', :a, :kernel_a), ('b', :b, :kernel_b)),
  counted AS (
    SELECT s.side, k.id, k.ordinal, k.name, k.code_sha256, coalesce(k.launch, k.name) AS launched,
      count(*) OVER (PARTITION BY s.side) = 1 AS alone,
      row_number() OVER (PARTITION BY s.side, coalesce(k.launch, k.name), k.name ORDER BY k.ordinal) AS place,
      json_object('ordinal', k.ordinal, 'name', k.name, 'launch', k.launch, 'code_sha256', k.code_sha256) AS kernel
    FROM sides s JOIN passes p ON p.run_id = s.run AND p.name = 'counters' JOIN kernels k ON k.pass_id = p.id
    WHERE :kernel_a IS NULL OR :kernel_b IS NULL OR k.ordinal = s.kernel),
  namesakes AS (
    SELECT a.ordinal AS a, b.ordinal AS b
    FROM counted a JOIN counted b ON b.launched = a.launched AND b.name = a.name AND b.place = a.place
    WHERE a.side = 'a' AND b.side = 'b'),
  others AS (
    SELECT side, ordinal, launched, alone, row_number() OVER (PARTITION BY side, launched ORDER BY ordinal) AS place
    FROM counted c WHERE NOT EXISTS (SELECT 1 FROM namesakes n WHERE c.ordinal = iif(c.side = 'a', n.a, n.b))),
  together AS (
    SELECT a, b FROM namesakes
    UNION ALL
    SELECT a.ordinal, b.ordinal
    FROM (SELECT * FROM others WHERE side = 'a') a FULL JOIN (SELECT * FROM others WHERE side = 'b') b
      ON (b.place = a.place AND b.launched = a.launched) OR (a.alone AND b.alone)),
  pairs AS ( -- LIMIT: put in order here, before the numbers are read
    SELECT a.id AS a, b.id AS b, json_object(
        'a', json(coalesce(a.kernel, 'null')), 'b', json(coalesce(b.kernel, 'null')),
        'same_code', json(CASE a.code_sha256 = b.code_sha256 WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'null' END)) AS pair
    FROM together t LEFT JOIN counted a ON a.side = 'a' AND a.ordinal = t.a LEFT JOIN counted b ON b.side = 'b' AND b.ordinal = t.b
    WHERE (:kernel_a IS NULL OR t.a = :kernel_a) AND (:kernel_b IS NULL OR t.b = :kernel_b)
    ORDER BY coalesce(t.a, t.b), t.a IS NULL LIMIT -1)
SELECT pair,
  (SELECT json_group_array(json_array(m.metric, m.value, m.reason)) FROM kernel_metrics m WHERE m.kernel_id = pairs.a),
  (SELECT json_group_array(json_array(m.metric, m.value, m.reason)) FROM kernel_metrics m WHERE m.kernel_id = pairs.b)
FROM pairs
