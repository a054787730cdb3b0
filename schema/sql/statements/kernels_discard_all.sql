-- Deletes kernels that a crash left of passes that were being stored.
DELETE FROM kernels WHERE stored_for > 0
