PRAGMA auto_vacuum = INCREMENTAL; -- takes effect only before the first table is created
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA foreign_keys = ON;
PRAGMA journal_size_limit = 67108864;
PRAGMA cache_size = -1024; -- 1024 KiB: enough for the pages that a slice changes; the kernel's page cache holds the other pages
