SELECT pass.state, job.state FROM passes pass JOIN jobs job ON job.id = pass.job_id WHERE pass.id = :pass AND pass.run_id = :run
  AND pass.job_id = :job
