-- :suite. The named baselines of a suite, oldest first.
SELECT json_object('name', b.name, 'run', b.suite_run_id, 'created_at', utc_text(b.created_ns), 'device', r.device,
                   'device_name', r.device_name, 'driver', r.driver, 'git_commit', r.git_commit)
FROM baselines b JOIN suite_runs r ON r.id = b.suite_run_id WHERE b.suite = :suite ORDER BY b.id
