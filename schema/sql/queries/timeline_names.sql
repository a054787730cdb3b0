-- :run. The names in the activity rows of a run, by ordinal from 0. Columns: name.
SELECT name FROM names WHERE pass_id = (SELECT id FROM passes WHERE run_id = :run AND ordinal = 1) ORDER BY ordinal
