-- Excludes jobs that profiled a named baseline, because later runs compare their profiles with it.
SELECT id FROM jobs WHERE finished_ns < :before AND NOT EXISTS (
  SELECT 1 FROM suite_jobs s JOIN baselines b ON b.suite_run_id = s.suite_run_id
  WHERE s.job_id = jobs.id AND s.role = 'profile')
ORDER BY finished_ns LIMIT 1
