-- :run; NULL: all suite runs.
UPDATE suite_runs SET listing = (SELECT listing FROM v_suite_listings WHERE suite_run = suite_runs.id)
WHERE id BETWEEN coalesce(:run, 0) AND coalesce(:run, 9223372036854775807)
