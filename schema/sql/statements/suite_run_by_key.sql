SELECT id, suite, body_sha256 FROM suite_runs WHERE idempotency_key = :key
