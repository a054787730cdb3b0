-- :run :kernel :inside. Columns: kernel, its numbers [[name, value, reason]...], series, instructions; the last two are NULL
-- without :inside. The kernels are those of the counters pass, or of the activity pass if the counters pass has none.
SELECT json_object(
    'ordinal', k.ordinal, 'name', k.name, 'launch', k.launch, 'phase', k.phase, 'pass', p.name,
    'grid', stored_json(iif(k.grid_x IS NULL, 'null', json_array(k.grid_x, k.grid_y, k.grid_z))),
    'block', stored_json(iif(k.block_x IS NULL, 'null', json_array(k.block_x, k.block_y, k.block_z))),
    'code_sha256', k.code_sha256),
  (SELECT json_group_array(json_array(m.metric, m.value, m.reason)) FROM kernel_metrics m WHERE m.kernel_id = k.id),
  iif(:inside, (SELECT json_group_array(stored_json(curve)) FROM (
     SELECT json_object('name', s.name, 'points', json_group_array(json_array(s.x, s.value))) AS curve
     FROM series s WHERE s.kernel_id = k.id GROUP BY s.name)), NULL),
  iif(:inside, (SELECT json_group_array(stored_json(instruction)) FROM (
     SELECT json_object('offset', i."offset", 'opcode', i.opcode, 'sass', i.sass, 'file', i.file, 'line', i.line,
                        'counts', stored_json(i.counts), 'reason', i.reason) AS instruction
     FROM instructions i WHERE i.kernel_id = k.id ORDER BY i."offset")), NULL)
FROM kernels k JOIN passes p ON p.id = k.pass_id
WHERE k.pass_id = (
    SELECT id FROM passes
    WHERE run_id = :run AND name IN ('counters', 'activity') AND EXISTS (SELECT 1 FROM kernels WHERE pass_id = passes.id)
    ORDER BY ordinal DESC LIMIT 1)
  AND (:kernel IS NULL OR k.ordinal = :kernel)
ORDER BY k.ordinal
