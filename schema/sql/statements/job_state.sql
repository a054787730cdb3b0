SELECT state FROM jobs WHERE id = :job
