DELETE FROM kernels WHERE id IN
  (SELECT k.id FROM passes p JOIN kernels k ON k.pass_id = p.id WHERE p.job_id = :job LIMIT :batch)
