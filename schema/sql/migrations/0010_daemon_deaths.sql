-- How often the daemon or the host went down in the middle of a job's pass, apart from the deaths of its worker.

ALTER TABLE jobs ADD COLUMN daemon_deaths INTEGER NOT NULL DEFAULT 0;

PRAGMA user_version = 10;
