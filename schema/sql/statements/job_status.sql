SELECT kind, state, created_ns, started_ns, finished_ns FROM jobs WHERE id = :job
