PRAGMA incremental_vacuum(1000)
