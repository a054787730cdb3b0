-- Returns the oldest job that retention may delete. Excludes jobs that profiled the suite run of a named baseline, because later
-- suite runs compare their profiles with that profile; and the newest completed ceilings job of each device, because the floors
-- of later jobs follow from its rates.
SELECT id FROM jobs WHERE finished_ns < :before
AND NOT EXISTS (
  SELECT 1 FROM suite_jobs suite_job JOIN baselines ON baselines.suite_run_id = suite_job.suite_run_id
  WHERE suite_job.job_id = jobs.id AND suite_job.role = 'profile')
AND NOT EXISTS (
  SELECT 1 FROM passes pass
  WHERE pass.job_id = jobs.id AND pass.ordinal = 0 AND pass.measures_ceilings = 1 AND pass.state = 'completed'
    AND pass.run_id = (SELECT max(run_id) FROM passes newest_pass
      WHERE newest_pass.device_id = pass.device_id AND newest_pass.measures_ceilings = 1 AND newest_pass.state = 'completed'))
ORDER BY finished_ns LIMIT 1
