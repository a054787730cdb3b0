INSERT INTO devices (facts, last_ns) VALUES (:facts, :now) ON CONFLICT (facts) DO UPDATE SET last_ns = :now
