-- Stores the item of suite run :run in lists of suite runs, or those of all suite runs (:run NULL).
UPDATE suite_runs SET listing = (SELECT listing FROM v_suite_listings WHERE suite_run = suite_runs.id)
WHERE id BETWEEN coalesce(:run, 0) AND coalesce(:run, 9223372036854775807)
