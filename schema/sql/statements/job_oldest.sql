-- Returns the oldest job that retention may delete. Excludes jobs that profiled the suite run of a named baseline, because later
-- suite runs compare their profiles with that profile.
SELECT id FROM jobs WHERE finished_ns < :before AND NOT EXISTS (
  SELECT 1 FROM suite_jobs suite_job JOIN baselines ON baselines.suite_run_id = suite_job.suite_run_id
  WHERE suite_job.job_id = jobs.id AND suite_job.role = 'profile')
ORDER BY finished_ns LIMIT 1
