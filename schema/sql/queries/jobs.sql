-- :before :kind :state :device :limit. Jobs with ids below :before, newest first. Columns: job, its id (:before of the next
-- page).
SELECT json_object(
  'id', j.id, 'kind', j.kind, 'origin', j.origin, 'state', j.state, 'device', j.device,
  'created_at', j.created_at, 'started_at', j.started_at, 'finished_at', j.finished_at,
  'passes', json((SELECT json_object('total', count(*), 'pending', count(*) FILTER (WHERE state = 'pending'),
                                     'running', count(*) FILTER (WHERE state = 'running'),
                                     'completed', count(*) FILTER (WHERE state = 'completed'),
                                     'unavailable', count(*) FILTER (WHERE state = 'unavailable'))
                  FROM passes WHERE job_id = j.id)),
  'problem', json(iif(j.problem_message IS NULL, 'null', json_object(
    'domain', j.problem_domain, 'code', j.problem_code, 'message', j.problem_message))),
  'workload', first.workload, 'dtype', first.params ->> '$.dtype', 'shape', json(first.params -> '$.shape'),
  'batch_size', first.params ->> '$.batch_size',
  'variants', json((SELECT json_group_array(variant) FROM (SELECT variant FROM runs WHERE job_id = j.id ORDER BY ordinal))),
  'fastest', json(coalesce((
    SELECT json_object('run', run, 'variant', variant, 'epoch_ms_median', epoch_ms_median, 'time_cold_us_median', cold_us) FROM (
      SELECT v.run, v.variant, v.epoch_ms_median, NULL AS cold_us FROM v_runs v
      WHERE v.job = j.id AND j.kind = 'train' AND v.epoch_ms_median IS NOT NULL AND NOT v.suspect
      UNION ALL
      SELECT r.id, r.variant, NULL, t.cold_us FROM runs r JOIN v_launch_times t ON t.run = r.id
      WHERE r.job_id = j.id AND j.kind <> 'train' AND t.cold_us IS NOT NULL AND t.cold_suspect IS NULL)
    ORDER BY coalesce(epoch_ms_median, cold_us) LIMIT 1), 'null'))),
  j.id
FROM jobs j LEFT JOIN runs first ON first.job_id = j.id AND first.ordinal = 0
WHERE j.id < coalesce(:before, 9223372036854775807) AND (:kind IS NULL OR j.kind = :kind) AND (:state IS NULL OR j.state = :state)
  AND (:device IS NULL OR j.device = :device)
ORDER BY j.id DESC LIMIT coalesce(:limit, 100)
