-- Adds the likely cause of a pass's times below their floor. It stays NULL for passes that are already stored.
ALTER TABLE passes ADD COLUMN suspect_cause TEXT;
PRAGMA user_version = 38;
