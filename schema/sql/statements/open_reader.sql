PRAGMA cache_size = -256; -- as the writer's
