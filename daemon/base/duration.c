/* Implements duration.h. */
#include "base/duration.h"

#include <math.h>
#include <stdio.h>

static rl_duration_text format_digits(double value, const char *unit) {
  const double size = fabs(value);
  rl_duration_text duration;
  if (size > 0 && size < 1) snprintf(duration.text, sizeof duration.text, "%#.3g %s", value, unit);
  else snprintf(duration.text, sizeof duration.text, "%.*f %s", size == 0 ? 0 : size < 100 ? 2 : 1, value, unit);
  return duration;
}

rl_duration_text rl_duration_from_ms(double ms) {
  const double size = fabs(ms);
  rl_duration_text seconds;
  if (size < 1000) return format_digits(ms, "ms");
  snprintf(seconds.text, sizeof seconds.text, size < 10000 ? "%.3f s" : "%.2f s", ms / 1000);
  return seconds;
}

rl_duration_text rl_duration_from_us(double us) {
  const double size = fabs(us);
  if (size >= 1000) return rl_duration_from_ms(us / 1000);
  return size > 0 && size < 1 ? format_digits(us * 1000, "ns") : format_digits(us, "µs");
}
