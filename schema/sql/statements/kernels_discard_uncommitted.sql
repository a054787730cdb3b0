-- Deletes the kernels of all passes that are not committed. Executed when the daemon starts, because a crash may have left them.
DELETE FROM kernels WHERE stored_for > 0
