-- Returns the names in the activity rows of run :run, sorted by ordinal, which begins at 0.
SELECT name FROM names WHERE pass_id = (SELECT id FROM passes WHERE run_id = :run AND ordinal = 1) ORDER BY ordinal
