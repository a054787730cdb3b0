PRAGMA cache_size = -256; -- 256 KiB
