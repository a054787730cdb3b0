-- Returns the named baselines of suite :suite, the oldest first.
SELECT json_object('name', baseline.name, 'run', baseline.suite_run_id, 'created_at', utc_text(baseline.created_ns),
  'device', suite_run.device,
                   'device_name', suite_run.device_name, 'driver', suite_run.driver, 'git_commit', suite_run.git_commit)
FROM baselines baseline JOIN suite_runs suite_run ON suite_run.id = baseline.suite_run_id WHERE baseline.suite = :suite
  ORDER BY baseline.id
