UPDATE kernels SET pass_id = stored_for, stored_for = NULL WHERE stored_for = :pass
