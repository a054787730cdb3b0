INSERT INTO suite_runs (suite, definition, definition_sha256, jobs_sha256, device, against, against_run_id, against_request, order_seed, state, created_ns,
  planned_s, planned_basis, planned_jobs, idempotency_key, body_sha256)
VALUES (:suite, :definition, :definition_sha256, :jobs_sha256, :device, :against, :against_run, :against_request, :order_seed, 'queued', :now, :planned_s,
  :planned_basis, :planned_jobs, :key, :body_sha256)
RETURNING id
