-- Returns at most :limit runs of suite :suite on :device that were requested before suite run :run, the newest first. Excludes
-- runs that have not completed, are quarantined, or measured their own baseline. Columns: jobs_sha256, id, device_name, driver,
-- clock_setting, against.
SELECT suite_run.jobs_sha256, suite_run.id, suite_run.device_name, suite_run.driver, suite_run.clock_setting, suite_run.against
FROM suite_runs suite_run
WHERE suite_run.suite = :suite AND suite_run.device = :device AND suite_run.state = 'completed' AND suite_run.id < :run
  AND suite_run.quarantine_reason IS NULL
  AND suite_run.against_request IS NULL
ORDER BY suite_run.id DESC LIMIT :limit
