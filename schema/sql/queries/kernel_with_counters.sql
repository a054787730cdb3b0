-- Returns the name of the kernel with the ordinal :kernel in the counters pass of run :run; no row if there is no such kernel.
SELECT json_quote(kernel.name) FROM passes pass JOIN kernels kernel ON kernel.pass_id = pass.id
WHERE pass.run_id = :run AND pass.name = 'counters' AND kernel.ordinal = :kernel
