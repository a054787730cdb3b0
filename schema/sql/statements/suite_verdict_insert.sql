INSERT INTO suite_verdicts (suite_run_id, metric, verdict, method_version, judgement, causes)
VALUES (:run, :metric, :verdict, :method_version, :judgement, :causes)
