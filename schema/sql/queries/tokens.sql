-- Returns the names of the tokens, the oldest first.
SELECT json_object('name', name, 'created_at',
  strftime('%Y-%m-%dT%H:%M:%S', created_ns / 1000000000, 'unixepoch') || printf('.%09dZ', created_ns % 1000000000))
FROM tokens ORDER BY created_ns, hash
