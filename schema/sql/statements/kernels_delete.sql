DELETE FROM kernels WHERE id IN
  (SELECT kernel.id FROM passes pass JOIN kernels kernel ON kernel.pass_id = pass.id WHERE pass.job_id = :job LIMIT :batch)
