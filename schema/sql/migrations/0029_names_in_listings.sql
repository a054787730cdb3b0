-- jobs.listing has the job's name, tags, engine and, for posted code, its entry and launch. v_listings has changed.
PRAGMA user_version = 29;
