INSERT INTO kernel_metrics (kernel_id, metric, value, reason)
VALUES ((SELECT id FROM kernels WHERE pass_id = :pass AND ordinal = :ordinal), :metric, :value, :reason)
