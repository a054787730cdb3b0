-- Deletes kernels of a pass that is not committed, and their metrics, instructions, phases and points (ON DELETE CASCADE).
DELETE FROM kernels WHERE id IN (SELECT id FROM kernels WHERE stored_for = :pass LIMIT coalesce(:batch, -1))
