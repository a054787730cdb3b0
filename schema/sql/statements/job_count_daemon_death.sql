UPDATE jobs SET daemon_deaths = daemon_deaths + 1 WHERE id = :job RETURNING daemon_deaths
