PRAGMA auto_vacuum = INCREMENTAL; -- takes effect in a new database, before its first table
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA foreign_keys = ON;
PRAGMA journal_size_limit = 67108864;
PRAGMA cache_size = -256; -- KiB: what the daemon needs is the same after the first jobs as after thousands; the kernel keeps the file's pages
