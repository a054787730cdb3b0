UPDATE suite_runs SET state = :state, verdict = :verdict, reason = :reason, quarantine_reason = :quarantine_reason,
  baseline_runs = :baseline_runs, finished_ns = :now
WHERE id = :run AND state IN ('queued', 'running')
RETURNING id
