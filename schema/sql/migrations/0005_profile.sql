-- What the counters pass of a job looks at.

ALTER TABLE jobs ADD COLUMN profile TEXT CHECK (profile IS NULL OR json_valid(profile)); -- NULL: the job has no such pass, or is older than the column

PRAGMA user_version = 5;
