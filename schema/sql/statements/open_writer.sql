PRAGMA auto_vacuum = INCREMENTAL; -- takes effect only before the first table is created
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA foreign_keys = ON;
PRAGMA journal_size_limit = 67108864;
PRAGMA cache_size = -256; -- KiB; small to save memory, because the kernel's page cache holds the file
