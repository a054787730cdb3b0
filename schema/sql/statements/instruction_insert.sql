INSERT INTO instructions (kernel_id, "offset", opcode, sass, file, line, counts, reason)
VALUES ((SELECT id FROM kernels WHERE pass_id = :pass AND ordinal = :ordinal), :offset, :opcode, :sass, :file, nullif(:line, 0), :counts, :reason)
