-- Returns the newest completed job that has a run with this :workload, :variant, :nondefault_params and :device. Columns: id of
-- the job, its duration in s.
SELECT job.id, (job.finished_ns - job.started_ns) / 1e9
FROM configurations configuration JOIN history ON history.configuration_id = configuration.id JOIN runs run
  ON run.id = history.run_id JOIN jobs job ON job.id = run.job_id
WHERE configuration.workload = :workload AND configuration.variant = :variant
  AND configuration.nondefault_params = :nondefault_params AND configuration.device = :device
  AND job.state = 'completed'
ORDER BY history.configuration_id DESC, history.series_id DESC, history.finished_ns DESC LIMIT 1
