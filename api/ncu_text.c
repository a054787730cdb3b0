/* Implements ncu_text.h. A table lists the units that are scaled by factors of 1000. */
#include "api/ncu_text.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { MAX_UNITS = 6 };

/* A part of a unit's name, and the texts that replace this part, one for each factor of 1000. The first entry whose part is in
 * the unit's name applies. */
typedef struct unit_scale {
  const char *part;
  bool is_suffix;               /* the unit's name ends with the part; false: it begins with the part */
  const char *units[MAX_UNITS]; /* ends with NULL unless full */
} unit_scale;

static const unit_scale scales[] = {
    {.part = "byte", .units = {"byte", "Kbyte", "Mbyte", "Gbyte", "Tbyte", "Pbyte"}},
    {.part = "hz", .units = {"hz", "Khz", "Mhz", "Ghz", "Thz"}},
    {.part = "ns", .units = {"ns", "us", "ms", "s"}},
    {.part = "/s", .is_suffix = true, .units = {"/s", "/ms", "/us", "/ns"}},
};

/* Returns the position of the scale's part in the unit's name; NULL if the name does not contain the part. */
static const char *find_scaled_part(const char *unit, const unit_scale *scale) {
  size_t part_length = strlen(scale->part), unit_length = strlen(unit);
  if (scale->is_suffix) {
    if (unit_length <= part_length) return NULL;
    const char *end = unit + unit_length - part_length;
    return strcmp(end, scale->part) == 0 ? end : NULL;
  }
  return strncmp(unit, scale->part, part_length) == 0 && (unit[part_length] == '\0' || unit[part_length] == '/') ? unit : NULL;
}

static const unit_scale *find_scale(const char *unit) {
  for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
    if (find_scaled_part(unit, &scales[i])) return &scales[i];
  return NULL;
}

/* Writes 1234567.5 as "1,234,567.50". */
static void print_number(double value, char *text, size_t size) {
  char digits[40];
  bool whole = value == floor(value);
  if (isnan(value) || fabs(value) >= 1e24) {
    snprintf(text, size, isnan(value) ? "n/a" : "%g", value);
    return;
  }
  snprintf(digits, sizeof digits, "%.*f", whole ? 0 : 2, fabs(value));
  size_t integer_digits = strcspn(digits, "."), used = 0;
  if (value < 0) text[used++] = '-';
  for (size_t i = 0; i < integer_digits; i++) {
    if (i > 0 && (integer_digits - i) % 3 == 0) text[used++] = ',';
    text[used++] = digits[i];
  }
  snprintf(text + used, size - used, "%s", digits + integer_digits);
}

rl_ncu_text rl_ncu_format(double value, const char *unit) {
  rl_ncu_text text;
  print_number(value, text.value, sizeof text.value);
  snprintf(text.unit, sizeof text.unit, "%s", unit);
  return text;
}

rl_ncu_text rl_ncu_format_scaled(double value, const char *unit) {
  const unit_scale *scale = find_scale(unit);
  if (scale == NULL || !isfinite(value)) return rl_ncu_format(value, unit);
  int i = 0;
  for (; i + 1 < MAX_UNITS && scale->units[i + 1] && fabs(value) >= 1000; i++) value /= 1000;
  const char *part = find_scaled_part(unit, scale);
  rl_ncu_text text = rl_ncu_format(value, "");
  snprintf(text.unit, sizeof text.unit, "%.*s%s%s", (int)(part - unit), unit, scale->units[i], part + strlen(scale->part));
  return text;
}
