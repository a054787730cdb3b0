-- Rows of API calls about events and synchronisation gain the stream in the call's arguments, and the event record that the call
-- makes or waits for. These values are unknown (0) in older rows.
ALTER TABLE activity_dictionary ADD COLUMN call_stream INTEGER NOT NULL DEFAULT 0;
ALTER TABLE activity_dictionary ADD COLUMN event INTEGER NOT NULL DEFAULT 0;
PRAGMA user_version = 26;
