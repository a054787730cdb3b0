SELECT suite, state, quarantine_reason FROM suite_runs WHERE id = :run
