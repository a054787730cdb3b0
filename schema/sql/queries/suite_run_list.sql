-- :suite :before :limit. The runs of a suite with ids below :before, newest first. Columns: run, its id.
SELECT listing, id FROM suite_runs
WHERE suite = :suite AND id < coalesce(:before, 9223372036854775807) ORDER BY id DESC LIMIT coalesce(:limit, 100)
