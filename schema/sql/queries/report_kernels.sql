-- Returns the kernels of run :run, or its kernel with the ordinal :kernel (NULL: all). The kernels are those of the counters
-- pass, or those of the activity pass if the counters pass has none. (ORDER BY ordinal DESC prefers the counters pass.) Columns:
-- the kernel, its numbers [[name, value, reason]...], its series and its instructions; the last two are NULL unless
-- :with_series_and_instructions is 1. kernel.launch is the name of the workload's launch.
SELECT json_object(
    'ordinal', kernel.ordinal, 'name', kernel.name, 'launch', kernel.launch, 'phase', kernel.phase, 'pass', pass.name,
    'grid', stored_json(iif(kernel.grid_x IS NULL, 'null', json_array(kernel.grid_x, kernel.grid_y, kernel.grid_z))),
    'block', stored_json(iif(kernel.block_x IS NULL, 'null', json_array(kernel.block_x, kernel.block_y, kernel.block_z))),
    'code_sha256', kernel.code_sha256),
  (SELECT json_group_array(json_array(metric_row.metric, metric_row.value, metric_row.reason)) FROM kernel_metrics metric_row
    WHERE metric_row.kernel_id = kernel.id),
  iif(:with_series_and_instructions, (SELECT json_group_array(stored_json(curve)) FROM (
     SELECT json_object('name', series.name, 'points', json_group_array(json_array(series.x, series.value))) AS curve
     FROM series WHERE series.kernel_id = kernel.id GROUP BY series.name)), NULL),
  iif(:with_series_and_instructions, (SELECT json_group_array(stored_json(instruction)) FROM (
     SELECT json_object('offset', instruction."offset", 'opcode', instruction.opcode, 'sass', instruction.sass,
                        'file', instruction.file, 'line', instruction.line,
                        'counts', stored_json(instruction.counts), 'reason', instruction.reason) AS instruction
     FROM instructions instruction WHERE instruction.kernel_id = kernel.id ORDER BY instruction."offset")), NULL)
FROM kernels kernel JOIN passes pass ON pass.id = kernel.pass_id
WHERE kernel.pass_id = (
    SELECT id FROM passes
    WHERE run_id = :run AND name IN ('counters', 'activity') AND EXISTS (SELECT 1 FROM kernels WHERE pass_id = passes.id)
    ORDER BY ordinal DESC LIMIT 1)
  AND (:kernel IS NULL OR kernel.ordinal = :kernel)
ORDER BY kernel.ordinal
