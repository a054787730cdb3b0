-- jobs.listing has the ids of the job's runs. v_listings has changed.
PRAGMA user_version = 30;
