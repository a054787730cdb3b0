-- Excludes jobs that profiled a named baseline, because later runs compare their profiles with it.
SELECT id FROM jobs WHERE finished_ns < :before AND NOT EXISTS (
  SELECT 1 FROM suite_jobs suite_job JOIN baselines ON baselines.suite_run_id = suite_job.suite_run_id
  WHERE suite_job.job_id = jobs.id AND suite_job.role = 'profile')
ORDER BY finished_ns LIMIT 1
