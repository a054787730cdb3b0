SELECT id, body_sha256 FROM jobs WHERE idempotency_key = :key
