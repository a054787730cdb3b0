SELECT kind, state, created_ns, started_ns, finished_ns, events FROM jobs WHERE id = :job
