DELETE FROM measurements WHERE pass_id = :pass AND name IN ('floor_ms', 'floor_cold_us', 'floor_warm_us')
