-- :run :kernel. A row when the run's counters pass has a kernel with this ordinal.
SELECT json_quote(k.name) FROM passes p JOIN kernels k ON k.pass_id = p.id WHERE p.run_id = :run AND p.name = 'counters' AND k.ordinal = :kernel
