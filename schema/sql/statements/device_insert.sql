INSERT INTO devices (facts) VALUES (:facts) ON CONFLICT (facts) DO NOTHING
