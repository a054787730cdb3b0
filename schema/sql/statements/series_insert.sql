INSERT INTO series (kernel_id, name, x, value)
VALUES ((SELECT id FROM kernels WHERE pass_id = :pass AND ordinal = :ordinal), :name, :x, :value)
