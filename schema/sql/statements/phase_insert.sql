INSERT INTO phases (kernel_id, position, name, phase, steps, blocks, mean_us, min_us, max_us, share_ratio)
VALUES ((SELECT id FROM kernels WHERE pass_id = :pass AND ordinal = :ordinal), :position, :name, :phase, :steps, :blocks, :mean_us, :min_us, :max_us,
  :share_ratio)
