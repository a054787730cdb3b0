PRAGMA auto_vacuum = INCREMENTAL; -- takes effect only before the first table is created
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA foreign_keys = ON;
PRAGMA journal_size_limit = 67108864;
PRAGMA cache_size = -256; -- KiB; small, so that the daemon's memory does not grow: the page cache of the kernel holds the file
