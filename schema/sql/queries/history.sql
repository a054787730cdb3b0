-- :metric :workload :device :like :from :to :limit. With :like, a run's id: only runs that have the same workload, variant,
-- non-default parameters and device. Selects the newest :limit rows. Returns the oldest of them last, because the caller asks for
-- one row more than a page has, and that row only shows that there are older ones; the others come in the order of time.
SELECT json_object(
  'job', job, 'run', run, 'at', at, 'workload', workload, 'variant', variant, 'engine', engine,
  'device', device, 'device_name', device_name, 'commit', git_commit, 'metric', :metric, 'value', value,
  'partial', json(CASE "partial" WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'null' END),
  'suspect', json(iif(suspect, 'true', 'false')))
FROM (SELECT * FROM (
  SELECT v.job, v.run, p.finished_at AS at, v.workload, v.variant, v.engine, v.device, v.device_name,
    p.git_commit, v."partial", v.suspect, p.finished_ns,
    CASE WHEN p.ordinal <> 0 THEN m.value
         WHEN :metric = 'epoch_ms_median' THEN v.epoch_ms_median
         WHEN :metric = 'epoch_ms_min' THEN v.epoch_ms_min
         WHEN :metric = 'images_per_s' THEN v.images_per_s
         WHEN :metric = 'test_accuracy_ratio' THEN v.test_accuracy_ratio
         ELSE m.value END AS value
  FROM passes p CROSS JOIN v_runs v ON v.run = p.run_id LEFT JOIN measurements m ON m.pass_id = p.id AND m.name = :metric
  WHERE p.finished_ns >= coalesce(:from, 0) AND p.finished_ns < coalesce(:to, 9223372036854775807) AND p.state = 'completed'
    AND (:like IS NULL OR p.run_id IN (
      SELECT r.id FROM runs a JOIN jobs b ON b.id = a.job_id
        JOIN runs r ON r.workload = a.workload AND r.variant = a.variant AND r.nondefault_params = a.nondefault_params
        JOIN jobs j ON j.id = r.job_id AND j.device = b.device
      WHERE a.id = :like))
    AND (:workload IS NULL OR v.workload = :workload) AND (:device IS NULL OR v.device = :device))
WHERE value IS NOT NULL ORDER BY finished_ns DESC, run DESC LIMIT coalesce(:limit, 1000))
ORDER BY row_number() OVER (ORDER BY finished_ns DESC, run DESC) IS :limit, finished_ns, run
