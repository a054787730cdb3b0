-- :run. Columns: state, number of events.
SELECT state, events FROM suite_runs WHERE id = :run
