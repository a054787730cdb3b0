-- :run. The metrics of a suite run whose values are no baseline of later ones: slower, or an effect that fresh blocks did not
-- confirm.
SELECT metric FROM suite_verdicts
WHERE suite_run_id = :run AND (verdict = 'slower' OR (verdict = 'inconclusive' AND judgement ->> '$.confirmed' = 0))
