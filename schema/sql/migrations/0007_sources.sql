-- Kernels that were posted, each text once, and what the compiler said of them.

CREATE TABLE sources ( -- goes with the last job that names it
  sha256 TEXT PRIMARY KEY,
  text TEXT NOT NULL CHECK (json_valid(text)) -- code or binary, arguments, options, variants
) STRICT;

ALTER TABLE jobs ADD COLUMN source TEXT REFERENCES sources (sha256);
CREATE INDEX jobs_by_source ON jobs (source) WHERE source IS NOT NULL;
ALTER TABLE runs ADD COLUMN log TEXT; -- of the compiler

PRAGMA user_version = 7;
