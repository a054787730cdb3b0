-- Pairs the kernels of the counters passes of two runs by these rules, in this order:
-- 1. the n-th kernel of a launch and name with the n-th kernel of the same launch and name in the other run;
-- 2. among the remaining kernels, the n-th of a launch with the n-th of the same launch;
-- 3. the kernel of run a with the kernel of run b, if each run has only one kernel.
-- Parameters: :a and :b are the ids of the runs; :kernel_a and :kernel_b are ordinals of kernels. If one of them is given,
-- returns only the pair of that kernel; if both are given, pairs these two kernels. :numbers is 1 if the numbers of the kernels
-- are needed.
-- Columns: the pair as JSON, the numbers of a's kernel, the numbers of b's kernel.
WITH sides (side, run, kernel) AS (SELECT 'a', :a, :kernel_a UNION ALL SELECT 'b', :b, :kernel_b),
  kernels_of_both AS (
    SELECT sides.side, kernel.id, kernel.ordinal, kernel.name, kernel.code_sha256, coalesce(kernel.launch, kernel.name)
      AS launch_name,
      count(*) OVER (PARTITION BY sides.side) = 1 AS is_only_kernel,
      row_number() OVER (PARTITION BY sides.side, coalesce(kernel.launch, kernel.name), kernel.name ORDER BY kernel.ordinal)
        AS rank,
      json_object('ordinal', kernel.ordinal, 'name', kernel.name, 'launch', kernel.launch, 'code_sha256', kernel.code_sha256)
        AS kernel
    FROM sides JOIN passes pass ON pass.run_id = sides.run AND pass.name = 'counters' JOIN kernels kernel
      ON kernel.pass_id = pass.id
    WHERE :kernel_a IS NULL OR :kernel_b IS NULL OR kernel.ordinal = sides.kernel),
  kernels_of_a AS MATERIALIZED (SELECT * FROM kernels_of_both WHERE side = 'a'),
  kernels_of_b AS MATERIALIZED (SELECT * FROM kernels_of_both WHERE side = 'b'),
  same_launch_and_name AS MATERIALIZED (
    SELECT kernels_of_a.ordinal AS a, kernels_of_b.ordinal AS b
    FROM kernels_of_a JOIN kernels_of_b ON kernels_of_b.launch_name = kernels_of_a.launch_name
      AND kernels_of_b.name = kernels_of_a.name AND kernels_of_b.rank = kernels_of_a.rank),
  unpaired_a AS MATERIALIZED (
    SELECT ordinal, launch_name, is_only_kernel, row_number() OVER (PARTITION BY launch_name ORDER BY ordinal) AS rank
    FROM kernels_of_a WHERE ordinal NOT IN (SELECT a FROM same_launch_and_name)),
  unpaired_b AS MATERIALIZED (
    SELECT ordinal, launch_name, is_only_kernel, row_number() OVER (PARTITION BY launch_name ORDER BY ordinal) AS rank
    FROM kernels_of_b WHERE ordinal NOT IN (SELECT b FROM same_launch_and_name)),
  paired AS MATERIALIZED (
    SELECT a, b FROM same_launch_and_name
    UNION ALL
    SELECT unpaired_a.ordinal, unpaired_b.ordinal
    FROM unpaired_a FULL JOIN unpaired_b
      ON (unpaired_b.rank = unpaired_a.rank AND unpaired_b.launch_name = unpaired_a.launch_name)
        OR (unpaired_a.is_only_kernel AND unpaired_b.is_only_kernel)),
  pairs AS ( -- LIMIT -1 makes SQLite sort here, before it reads the numbers
    SELECT kernels_of_a.id AS a, kernels_of_b.id AS b, json_object(
        'a', stored_json(kernels_of_a.kernel), 'b', stored_json(kernels_of_b.kernel),
        'same_code',
        stored_json(CASE kernels_of_a.code_sha256 = kernels_of_b.code_sha256
          WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'null' END)) AS pair
    FROM paired LEFT JOIN kernels_of_a ON kernels_of_a.ordinal = paired.a
      LEFT JOIN kernels_of_b ON kernels_of_b.ordinal = paired.b
    WHERE (:kernel_a IS NULL OR paired.a = :kernel_a) AND (:kernel_b IS NULL OR paired.b = :kernel_b)
    ORDER BY coalesce(paired.a, paired.b), paired.a IS NULL LIMIT -1)
SELECT pair,
  (SELECT json_group_array(json_array(metric_row.metric, metric_row.value, metric_row.reason))
   FROM kernel_metrics metric_row WHERE metric_row.kernel_id = pairs.a AND :numbers),
  (SELECT json_group_array(json_array(metric_row.metric, metric_row.value, metric_row.reason))
   FROM kernel_metrics metric_row WHERE metric_row.kernel_id = pairs.b AND :numbers)
FROM pairs
