#include "base/metric_unit.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/quantity.h"

static const struct {
  const char *word, *symbol;
} units[] = {{"ns", "ns"},   {"us", "µs"},   {"ms", "ms"}, {"s", "s"}, {"bytes", "byte"},
             {"mhz", "MHz"}, {"ratio", "1"}, {"j", "J"},   {"w", "W"}, {"c", "°C"}};

static const char *metric_name(const char *key) {
  const char *slash = strrchr(key, '/');
  return slash != NULL ? slash + 1 : key;
}

/* Returns the index of the first unit that a word of the name stands for, or -1. */
static int find_unit(const char *name) {
  for (const char *separator = strchr(name, '_'); separator != NULL; separator = strchr(separator + 1, '_')) {
    const char *word = separator + 1;
    for (int i = 0; i < (int)(sizeof units / sizeof *units); i++)
      if (strcspn(word, "_") == strlen(units[i].word) && strncmp(word, units[i].word, strlen(units[i].word)) == 0) return i;
  }
  return -1;
}

static bool is_rate(const char *name) { return strstr(name, "_per_") != NULL; }

const char *rl_metric_unit_word(const char *key) {
  const char *name = metric_name(key);
  const int unit = is_rate(name) ? -1 : find_unit(name);
  return unit < 0 ? NULL : units[unit].word;
}

/* Writes "images/s" for train_images_per_s_median: the words before and after "per". */
static void write_rate(char *symbol, const char *name) {
  const char *per = strstr(name, "_per_"), *numerator = per, *denominator = per + strlen("_per_");
  while (numerator > name && numerator[-1] != '_') numerator--;
  snprintf(symbol, RL_METRIC_UNIT_SIZE, "%.*s/%.*s", (int)(per - numerator), numerator, (int)strcspn(denominator, "_"),
           denominator);
}

char *rl_metric_unit(char *unit, const char *key) {
  const char *name = metric_name(key);
  const int found = find_unit(name);
  if (is_rate(name)) write_rate(unit, name);
  else snprintf(unit, RL_METRIC_UNIT_SIZE, "%s", found < 0 ? "1" : units[found].symbol);
  return unit;
}

static rl_scaled_quantity scale_ratio(double ratio) { return (rl_scaled_quantity){100 * ratio, "%"}; }

char *rl_metric_text(char *text, const char *key, double value, int digits) {
  static const struct {
    const char *word;
    double factor; /* from the unit of the value to that of `scale` */
    rl_scaled_quantity (*scale)(double value);
  } scales[] = {{"ns", 1e-3, rl_scale_us}, {"us", 1, rl_scale_us},       {"ms", 1, rl_scale_ms},
                {"s", 1e3, rl_scale_ms},   {"bytes", 1, rl_scale_bytes}, {"ratio", 1, scale_ratio}};
  char unit[RL_METRIC_UNIT_SIZE];
  rl_scaled_quantity scaled = {value, rl_metric_unit(unit, key)};
  const char *word = rl_metric_unit_word(key);
  for (size_t i = 0; word != NULL && i < sizeof scales / sizeof *scales; i++)
    if (strcmp(word, scales[i].word) == 0) scaled = scales[i].scale(value * scales[i].factor);
  const double size = fabs(scaled.value);
  const bool is_plain = size >= 1e-3 && size < 1e15; /* other values have an exponent */
  const bool has_unit = strcmp(scaled.unit, "1") != 0;
  snprintf(text, RL_METRIC_TEXT_SIZE, is_plain ? "%.*f%s%s" : "%.*g%s%s",
           is_plain ? (int)fmax(0, digits - 1 - floor(log10(size))) : digits, scaled.value, has_unit ? " " : "",
           has_unit ? scaled.unit : "");
  return text;
}
