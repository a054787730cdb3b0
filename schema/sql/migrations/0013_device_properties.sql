ALTER TABLE devices RENAME COLUMN facts TO properties;
PRAGMA user_version = 13;
