PRAGMA cache_size = -256; -- KiB, as in open_writer
