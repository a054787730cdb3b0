-- jobs.listing gains the job's name, tags, engine and, for posted code, its entry and launch, because the view v_listings has
-- changed.
PRAGMA user_version = 29;
