INSERT INTO sources (sha256, text) VALUES (:sha256, :text) ON CONFLICT DO NOTHING
