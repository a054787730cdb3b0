/* Implements quantity.h. */
#include "base/quantity.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

rl_scaled_quantity rl_scale_ms(double ms) {
  return fabs(ms) < 1000 ? (rl_scaled_quantity){ms, "ms"} : (rl_scaled_quantity){ms / 1000, "s"};
}

rl_scaled_quantity rl_scale_us(double us) {
  const double size = fabs(us);
  if (size >= 1000) return rl_scale_ms(us / 1000);
  return size > 0 && size < 1 ? (rl_scaled_quantity){us * 1000, "ns"} : (rl_scaled_quantity){us, "µs"};
}

rl_scaled_quantity rl_scale_bytes(double bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t step = 0;
  for (; fabs(bytes) >= 1024 && step + 1 < sizeof units / sizeof *units; step++) bytes /= 1024;
  return (rl_scaled_quantity){bytes, units[step]};
}

static rl_quantity_text format_duration(rl_scaled_quantity duration) {
  const double size = fabs(duration.value);
  rl_quantity_text text;
  if (size > 0 && size < 1) snprintf(text.text, sizeof text.text, "%#.3g %s", duration.value, duration.unit);
  else {
    const bool is_in_seconds = strcmp(duration.unit, "s") == 0;
    const int decimals = is_in_seconds ? (size < 10 ? 3 : 2) : size == 0 ? 0 : size < 100 ? 2 : 1;
    snprintf(text.text, sizeof text.text, "%.*f %s", decimals, duration.value, duration.unit);
  }
  return text;
}

rl_quantity_text rl_ms_text(double ms) { return format_duration(rl_scale_ms(ms)); }
rl_quantity_text rl_us_text(double us) { return format_duration(rl_scale_us(us)); }

rl_quantity_text rl_bytes_text(double bytes) {
  const rl_scaled_quantity scaled = rl_scale_bytes(bytes);
  rl_quantity_text text;
  snprintf(text.text, sizeof text.text, "%.*f %s", strcmp(scaled.unit, "B") == 0 ? 0 : 1, scaled.value, scaled.unit);
  return text;
}

static rl_quantity_text format_quantity(double value, const char *format) {
  rl_quantity_text quantity;
  snprintf(quantity.text, sizeof quantity.text, format, value);
  return quantity;
}

rl_quantity_text rl_bytes_per_s_text(double bytes_per_s) {
  if (bytes_per_s >= 1e12) return format_quantity(bytes_per_s * 1e-12, "%.2f TB/s");
  if (bytes_per_s >= 1e9) return format_quantity(bytes_per_s * 1e-9, "%.1f GB/s");
  return bytes_per_s >= 1e6 ? format_quantity(bytes_per_s * 1e-6, "%.1f MB/s") : format_quantity(bytes_per_s * 1e-3, "%.1f kB/s");
}

rl_quantity_text rl_operations_per_s_text(double operations_per_s) {
  if (operations_per_s >= 1e12) return format_quantity(operations_per_s * 1e-12, "%.2f TFLOP/s");
  return operations_per_s >= 1e9 ? format_quantity(operations_per_s * 1e-9, "%.1f GFLOP/s")
                                 : format_quantity(operations_per_s * 1e-6, "%.1f MFLOP/s");
}
