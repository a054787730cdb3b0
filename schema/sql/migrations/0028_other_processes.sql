-- Adds the processes that used the device while a block was measured.
ALTER TABLE suite_values ADD COLUMN other_processes TEXT;
PRAGMA user_version = 28;
