-- Returns the state of suite run :run and its number of events.
SELECT state, events FROM suite_runs WHERE id = :run
