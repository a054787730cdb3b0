DELETE FROM jobs WHERE id = :job AND state IN ('completed', 'failed', 'cancelled') RETURNING source
