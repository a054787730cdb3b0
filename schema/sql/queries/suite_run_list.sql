-- Returns at most :limit runs of suite :suite with ids below :before, the newest first. Columns: the run, its id.
SELECT listing, id FROM suite_runs
WHERE suite = :suite AND id < coalesce(:before, 9223372036854775807) ORDER BY id DESC LIMIT coalesce(:limit, 100)
