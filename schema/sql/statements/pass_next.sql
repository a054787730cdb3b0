-- Selects the next pass of a device: a pass of the running job; else of the oldest queued job of a client; else of the oldest
-- queued job of the daemon. Within a job all timing passes come first, so that times that are compared are measured shortly after
-- each other.
SELECT job.id, run.id, pass.id, pass.ordinal, run.workload, run.variant, run.params, job.deadline_s, job.profile,
  posted_source.text,
  coalesce(job.request ->> '$.fresh_worker', 0), job.request ->> '$.worker_build'
FROM jobs job JOIN passes pass ON pass.job_id = job.id JOIN runs run ON run.id = pass.run_id LEFT JOIN sources posted_source
  ON posted_source.sha256 = job.source
WHERE job.id = coalesce((SELECT min(id) FROM jobs WHERE device = :device AND state = 'running'),
                      (SELECT min(id) FROM jobs WHERE device = :device AND state = 'queued' AND origin = 'client'),
                      (SELECT min(id) FROM jobs WHERE device = :device AND state = 'queued'))
  AND pass.state = 'pending'
ORDER BY pass.ordinal, run.ordinal LIMIT 1
