#include "api/ncu_text.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef struct scale {
  const char *from; /* how a unit begins */
  const char *prefixes[6];
  bool whole;       /* the prefix replaces the unit; else it goes in front */
} scale;

static const scale scales[] = {
    {"byte", {"", "K", "M", "G", "T", "P"}, false},
    {"hz", {"", "K", "M", "G", "T", "P"}, false},
    {"ns", {"ns", "us", "ms", "s", "s", "s"}, true},
};
enum { TIME_STEPS = 3, OTHER_STEPS = 5 };

static const scale *scale_of(const char *unit) {
  for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
    size_t length = strlen(scales[i].from);
    if (strncmp(unit, scales[i].from, length) == 0 && (unit[length] == '\0' || unit[length] == '/')) return &scales[i];
  }
  return NULL;
}

/* 1234567.5: "1,234,567.50" */
static void print_number(double value, char *text, size_t size) {
  char digits[40];
  bool whole = value == floor(value);
  if (isnan(value) || fabs(value) >= 1e24) {
    snprintf(text, size, isnan(value) ? "(!) n/a" : "%g", value);
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
  int step = 0, most = known->whole ? TIME_STEPS : OTHER_STEPS;
  for (; step < most && fabs(value) >= 1000; step++) value /= 1000;
  rl_ncu_text text = rl_ncu_plain(value, "");
  snprintf(text.unit, sizeof text.unit, "%s%s", known->prefixes[step], known->whole ? unit + strlen(known->from) : unit);
  return text;
}
