-- Rows of imported traces mark registers, shared memory and bytes that the trace does not have. In older rows these values are 0, as
-- if they were known.
ALTER TABLE activity_dictionary ADD COLUMN unknown_values INTEGER NOT NULL DEFAULT 0;
PRAGMA user_version = 32;
