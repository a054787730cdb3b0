-- Returns how the verdicts of suite run :run affect later runs. Columns: metric; whether its values are excluded from baselines,
-- because it was slower and the run was not promoted, or because confirming blocks did not confirm its effect; whether it was
-- faster; whether it was slower and the run was promoted.
SELECT metric, (verdict = 'slower' AND NOT promoted) OR (verdict = 'inconclusive' AND judgement ->> '$.confirmed' IS 0),
  verdict = 'faster', verdict = 'slower' AND promoted
FROM suite_verdicts, (SELECT EXISTS (SELECT 1 FROM baselines WHERE suite_run_id = :run) AS promoted)
WHERE suite_run_id = :run AND verdict IN ('slower', 'faster', 'inconclusive')
