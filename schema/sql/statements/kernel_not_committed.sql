SELECT id FROM kernels WHERE stored_for = :pass AND ordinal = :ordinal
