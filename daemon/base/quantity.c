/* Implements quantity.h. */
#include "base/quantity.h"

#include <math.h>
#include <stdio.h>

static rl_quantity_text format_digits(double value, const char *unit) {
  const double size = fabs(value);
  rl_quantity_text quantity;
  if (size > 0 && size < 1) snprintf(quantity.text, sizeof quantity.text, "%#.3g %s", value, unit);
  else snprintf(quantity.text, sizeof quantity.text, "%.*f %s", size == 0 ? 0 : size < 100 ? 2 : 1, value, unit);
  return quantity;
}

rl_quantity_text rl_ms_text(double ms) {
  const double size = fabs(ms);
  rl_quantity_text seconds;
  if (size < 1000) return format_digits(ms, "ms");
  snprintf(seconds.text, sizeof seconds.text, size < 10000 ? "%.3f s" : "%.2f s", ms / 1000);
  return seconds;
}

rl_quantity_text rl_us_text(double us) {
  const double size = fabs(us);
  if (size >= 1000) return rl_ms_text(us / 1000);
  return size > 0 && size < 1 ? format_digits(us * 1000, "ns") : format_digits(us, "µs");
}

rl_quantity_text rl_bytes_text(double bytes) {
  rl_quantity_text text;
  if (fabs(bytes) < 1024) snprintf(text.text, sizeof text.text, "%.0f B", bytes);
  else if (fabs(bytes) < 1048576) snprintf(text.text, sizeof text.text, "%.1f KiB", bytes / 1024);
  else if (fabs(bytes) < 10240.0 * 1048576) snprintf(text.text, sizeof text.text, "%.1f MiB", bytes / 1048576);
  else snprintf(text.text, sizeof text.text, "%.1f GiB", bytes / 1073741824);
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
