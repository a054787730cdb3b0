#include "api/ncu_text.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = 6 };

/* A part of a unit and what it becomes with each thousand; the first that a unit has counts. */
typedef struct scale {
  const char *part;
  bool at_end;              /* else the unit begins with it */
  const char *steps[STEPS]; /* NULL behind the last */
} scale;

static const scale scales[] = {
    {"byte", false, {"byte", "Kbyte", "Mbyte", "Gbyte", "Tbyte", "Pbyte"}},
    {"hz", false, {"hz", "Khz", "Mhz", "Ghz", "Thz"}},
    {"ns", false, {"ns", "us", "ms", "s"}},
    {"/s", true, {"/s", "/ms", "/us", "/ns"}},
};

/* Where the unit has the scale's part; NULL: nowhere. */
static const char *part_in(const char *unit, const scale *of) {
  size_t length = strlen(of->part), all = strlen(unit);
  if (of->at_end) return all > length && strcmp(unit + all - length, of->part) == 0 ? unit + all - length : NULL;
  return strncmp(unit, of->part, length) == 0 && (unit[length] == '\0' || unit[length] == '/') ? unit : NULL;
}

static const scale *scale_of(const char *unit) {
  for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
    if (part_in(unit, &scales[i])) return &scales[i];
  return NULL;
}

/* 1234567.5: "1,234,567.50" */
static void print_number(double value, char *text, size_t size) {
  char digits[40];
  bool whole = value == floor(value);
  if (isnan(value) || fabs(value) >= 1e24) {
    snprintf(text, size, isnan(value) ? "n/a" : "%g", value);
    return;
  }
  snprintf(digits, sizeof digits, "%.*f", whole ? 0 : 2, fabs(value));
  size_t integers = strcspn(digits, "."), used = 0;
  if (value < 0) text[used++] = '-';
  for (size_t i = 0; i < integers; i++) {
    if (i > 0 && (integers - i) % 3 == 0) text[used++] = ',';
    text[used++] = digits[i];
  }
  snprintf(text + used, size - used, "%s", digits + integers);
}

rl_ncu_text rl_ncu_plain(double value, const char *unit) {
  rl_ncu_text text;
  print_number(value, text.value, sizeof text.value);
  snprintf(text.unit, sizeof text.unit, "%s", unit);
  return text;
}

rl_ncu_text rl_ncu_scaled(double value, const char *unit) {
  const scale *known = scale_of(unit);
  if (known == NULL || !isfinite(value)) return rl_ncu_plain(value, unit);
  int step = 0;
  for (; step + 1 < STEPS && known->steps[step + 1] && fabs(value) >= 1000; step++) value /= 1000;
  const char *part = part_in(unit, known);
  rl_ncu_text text = rl_ncu_plain(value, "");
  snprintf(text.unit, sizeof text.unit, "%.*s%s%s", (int)(part - unit), unit, known->steps[step], part + strlen(known->part));
  return text;
}
