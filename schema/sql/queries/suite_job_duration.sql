-- :workload :variant :nondefault_params :device. The duration of the newest completed job with such a run. Columns: the job,
-- seconds.
SELECT j.id, (j.finished_ns - j.started_ns) / 1e9
FROM configurations c JOIN history h ON h.configuration_id = c.id JOIN runs r ON r.id = h.run_id JOIN jobs j ON j.id = r.job_id
WHERE c.workload = :workload AND c.variant = :variant AND c.nondefault_params = :nondefault_params AND c.device = :device
  AND j.state = 'completed'
ORDER BY h.configuration_id DESC, h.series_id DESC, h.finished_ns DESC LIMIT 1
