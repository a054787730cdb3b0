-- Selects from the running job; else from the oldest queued job of a client; else from the oldest queued job of the daemon.
-- Within a job all timing passes come first, so that times that are compared are measured shortly after each other.
SELECT j.id, r.id, p.id, p.ordinal, r.workload, r.variant, r.params, j.deadline_s, j.profile, s.text,
  coalesce(j.request ->> '$.fresh_worker', 0), j.request ->> '$.worker_build'
FROM jobs j JOIN passes p ON p.job_id = j.id JOIN runs r ON r.id = p.run_id LEFT JOIN sources s ON s.sha256 = j.source
WHERE j.id = coalesce((SELECT min(id) FROM jobs WHERE device = :device AND state = 'running'),
                      (SELECT min(id) FROM jobs WHERE device = :device AND state = 'queued' AND origin = 'client'),
                      (SELECT min(id) FROM jobs WHERE device = :device AND state = 'queued'))
  AND p.state = 'pending'
ORDER BY p.ordinal, r.ordinal LIMIT 1
