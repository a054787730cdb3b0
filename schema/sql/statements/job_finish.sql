UPDATE jobs SET state = :state, finished_ns = iif(:state = 'interrupted', NULL, :now), problem_domain = :domain,
  problem_code = iif(:domain IS NULL, NULL, :code), problem_message = :message, listing = NULL
WHERE id = :job
