-- Estimates the size of the data that retention never deletes, from below: a page for each table and index, the long texts and
-- the many rows of the needed suite runs and jobs.
WITH needed_suite_runs AS MATERIALIZED (SELECT suite_run FROM v_needed_suite_runs)
SELECT (SELECT count(*) FROM sqlite_schema WHERE rootpage > 0) * (SELECT page_size FROM pragma_page_size())
  + (SELECT coalesce(sum(length(definition) + length(jobs_sha256) + coalesce(length(listing), 0)), 0)
     FROM suite_runs WHERE id IN (SELECT suite_run FROM needed_suite_runs))
  + (SELECT coalesce(sum(length(metric) + length(role) + 8), 0)
     FROM suite_values WHERE suite_run_id IN (SELECT suite_run FROM needed_suite_runs))
  + (SELECT coalesce(sum(length(judgement) + length(causes)), 0)
     FROM suite_verdicts WHERE suite_run_id IN (SELECT suite_run FROM needed_suite_runs))
  + (SELECT coalesce(sum((SELECT coalesce(sum(length(metric) + 8), 0) FROM kernel_metrics WHERE kernel_id = kernels.id)
       + (SELECT coalesce(sum(length(counts) + coalesce(length(sass), 0)), 0) FROM instructions WHERE kernel_id = kernels.id)), 0)
     FROM passes JOIN kernels ON kernels.pass_id = passes.id WHERE passes.job_id IN (SELECT job FROM v_needed_jobs))
