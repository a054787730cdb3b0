INSERT INTO epochs (pass_id, epoch, warmup, device_ms, host_ms, evaluation_ms, images, train_loss, test_loss, test_accuracy_ratio, loss_scale,
  skipped_steps, sm_clock_before_mhz, sm_clock_after_mhz, memory_clock_mhz, temperature_c, power_w, throttle_reasons, unavailable)
VALUES (:pass, :epoch, :warmup, :device_ms, :host_ms, :evaluation_ms, :images, :train_loss, :test_loss, :test_accuracy_ratio, :loss_scale,
  :skipped_steps, :sm_clock_before_mhz, :sm_clock_after_mhz, :memory_clock_mhz, :temperature_c, :power_w, :throttle_reasons, :unavailable)
