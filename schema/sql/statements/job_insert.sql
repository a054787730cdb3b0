INSERT INTO jobs (kind, device, state, request, profile, source, deadline_s, created_ns, idempotency_key, body_sha256, origin)
VALUES (:kind, :device, 'queued', :request, :profile, :source, :deadline_s, :now, :key, :body_sha256, :origin)
RETURNING id
