INSERT INTO samples (pass_id, mode, ordinal, device_us) VALUES (:pass, :mode, :ordinal, :device_us)
