-- :run :suite :device :limit. The good runs before a suite run, newest first. Columns: jobs_sha256, id, device_name, driver,
-- clock_setting, against.
SELECT r.jobs_sha256, r.id, r.device_name, r.driver, r.clock_setting, r.against
FROM suite_runs r
WHERE r.suite = :suite AND r.device = :device AND r.state = 'completed' AND r.id < :run AND r.quarantine_reason IS NULL
  AND r.against_request IS NULL
ORDER BY r.id DESC LIMIT :limit
