-- Adds the likely cause of a pass's times below their floor. For passes that are already
-- stored it stays NULL, unless their floors are computed again (0037_floors_of_counted_work.sql).
ALTER TABLE passes ADD COLUMN suspect_cause TEXT;
PRAGMA user_version = 38;
