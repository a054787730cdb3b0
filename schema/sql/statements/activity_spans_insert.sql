INSERT INTO activity_spans (pass_id, kind, activity_rows, longest_ns)
SELECT :pass, kind, count(*), max(end_ns - start_ns) FROM activity WHERE pass_id = :pass GROUP BY kind
