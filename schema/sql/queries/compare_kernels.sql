-- Pairs the kernels of the counters passes of two runs by these rules, in this order:
-- 1. the n-th kernel of a launch and name with the n-th kernel of the same launch and name in the other run;
-- 2. among the remaining kernels, the n-th of a launch with the n-th of the same launch;
-- 3. two kernels that are the only ones of their runs.
-- Parameters: :a and :b are the ids of the runs; :kernel_a and :kernel_b are ordinals of kernels. If one of them is given,
-- returns only the pair of that kernel; if both are given, pairs these two kernels. :numbers is 1 if the numbers of the kernels
-- are needed.
-- Columns: the pair as JSON, the numbers of a's kernel, the numbers of b's kernel.
WITH sides (side, run, kernel) AS (SELECT 'a', :a, :kernel_a UNION ALL SELECT 'b', :b, :kernel_b),
  counted AS (
    SELECT sides.side, kernel.id, kernel.ordinal, kernel.name, kernel.code_sha256, coalesce(kernel.launch, kernel.name)
      AS launched,
      count(*) OVER (PARTITION BY sides.side) = 1 AS alone,
      row_number() OVER (PARTITION BY sides.side, coalesce(kernel.launch, kernel.name), kernel.name ORDER BY kernel.ordinal)
        AS rank,
      json_object('ordinal', kernel.ordinal, 'name', kernel.name, 'launch', kernel.launch, 'code_sha256', kernel.code_sha256)
        AS kernel
    FROM sides JOIN passes pass ON pass.run_id = sides.run AND pass.name = 'counters' JOIN kernels kernel
      ON kernel.pass_id = pass.id
    WHERE :kernel_a IS NULL OR :kernel_b IS NULL OR kernel.ordinal = sides.kernel),
  of_a AS MATERIALIZED (SELECT * FROM counted WHERE side = 'a'),
  of_b AS MATERIALIZED (SELECT * FROM counted WHERE side = 'b'),
  same_name AS MATERIALIZED (
    SELECT of_a.ordinal AS a, of_b.ordinal AS b
    FROM of_a JOIN of_b ON of_b.launched = of_a.launched AND of_b.name = of_a.name AND of_b.rank = of_a.rank),
  left_a AS MATERIALIZED (
    SELECT ordinal, launched, alone, row_number() OVER (PARTITION BY launched ORDER BY ordinal) AS rank
    FROM of_a WHERE ordinal NOT IN (SELECT a FROM same_name)),
  left_b AS MATERIALIZED (
    SELECT ordinal, launched, alone, row_number() OVER (PARTITION BY launched ORDER BY ordinal) AS rank
    FROM of_b WHERE ordinal NOT IN (SELECT b FROM same_name)),
  together AS MATERIALIZED (
    SELECT a, b FROM same_name
    UNION ALL
    SELECT left_a.ordinal, left_b.ordinal
    FROM left_a FULL JOIN left_b
      ON (left_b.rank = left_a.rank AND left_b.launched = left_a.launched) OR (left_a.alone AND left_b.alone)),
  pairs AS ( -- LIMIT -1 makes SQLite sort here, before it reads the numbers
    SELECT of_a.id AS a, of_b.id AS b, json_object(
        'a', stored_json(of_a.kernel), 'b', stored_json(of_b.kernel),
        'same_code',
        stored_json(CASE of_a.code_sha256 = of_b.code_sha256 WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'null' END)) AS pair
    FROM together LEFT JOIN of_a ON of_a.ordinal = together.a LEFT JOIN of_b ON of_b.ordinal = together.b
    WHERE (:kernel_a IS NULL OR together.a = :kernel_a) AND (:kernel_b IS NULL OR together.b = :kernel_b)
    ORDER BY coalesce(together.a, together.b), together.a IS NULL LIMIT -1)
SELECT pair,
  (SELECT json_group_array(json_array(metric_row.metric, metric_row.value, metric_row.reason))
   FROM kernel_metrics metric_row WHERE metric_row.kernel_id = pairs.a AND :numbers),
  (SELECT json_group_array(json_array(metric_row.metric, metric_row.value, metric_row.reason))
   FROM kernel_metrics metric_row WHERE metric_row.kernel_id = pairs.b AND :numbers)
FROM pairs
