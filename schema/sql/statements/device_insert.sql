INSERT INTO devices (properties, last_ns) VALUES (:properties, :now) ON CONFLICT (properties) DO UPDATE SET last_ns = :now
