-- jobs.listing gains the ids of the job's runs, because the view v_listings has changed.
PRAGMA user_version = 30;
