-- Returns the values that activity rows of run :run share, sorted by entry, which begins at 0. Columns: '', entry, ordinal of
-- the name, graph node (of a call: event), stream of the operation or call, thread, bytes (-1: unknown).
SELECT '', entry, name, graph_node + event, stream + call_stream, thread, iif(unknown_values & 8, -1, bytes)
FROM activity_dictionary WHERE pass_id = (SELECT id FROM passes WHERE run_id = :run AND ordinal = 1) ORDER BY entry
