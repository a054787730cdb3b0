UPDATE jobs SET worker_deaths = worker_deaths + 1 WHERE id = :job RETURNING worker_deaths
