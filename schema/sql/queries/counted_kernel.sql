-- :run :kernel. The name of the kernel with this ordinal in the run's counters pass; no row if there is none.
SELECT json_quote(k.name) FROM passes p JOIN kernels k ON k.pass_id = p.id
WHERE p.run_id = :run AND p.name = 'counters' AND k.ordinal = :kernel
