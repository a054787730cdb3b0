UPDATE runs SET engine = :engine, dataset = :dataset, dataset_sha256 = :dataset_sha256, deterministic = :deterministic,
  deterministic_note = :deterministic_note, "partial" = :partial, images_per_epoch = :images_per_epoch,
  steps_per_epoch = :steps_per_epoch, parameters = :parameters, floor_operations = :floor_operations, floor_bytes = :floor_bytes,
  floor_written_bytes = :floor_written_bytes, floor_precision = :floor_precision
WHERE id = :run AND engine IS NULL
