UPDATE jobs SET state = :state, finished_ns = iif(:state = 'interrupted', NULL, :now), problem_domain = :domain, problem_code = :code,
  problem_message = :message
WHERE id = :job
