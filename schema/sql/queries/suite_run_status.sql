-- Returns the state of suite run :run, its number of events, its estimated duration in s and the basis of the estimate.
SELECT state, events, planned_s, planned_basis FROM suite_runs WHERE id = :run
