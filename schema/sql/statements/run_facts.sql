UPDATE runs SET engine = :engine, dataset = :dataset, dataset_sha256 = :dataset_sha256, deterministic = :deterministic,
  deterministic_note = :deterministic_note, "partial" = :partial, images_per_epoch = nullif(:images_per_epoch, 0),
  steps_per_epoch = nullif(:steps_per_epoch, 0), parameters = nullif(:parameters, 0), floor_operations = :floor_operations, floor_bytes = :floor_bytes,
  floor_written_bytes = :floor_written_bytes, floor_precision = :floor_precision
WHERE id = :run AND engine IS NULL
