/* Implements clock.h. */
#include "base/clock.h"

#include <stdbool.h>
#include <stdio.h>
#include <time.h>

static int64_t read_clock(clockid_t id) {
  struct timespec now;
  clock_gettime(id, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t rl_realtime_ns(void) { return read_clock(CLOCK_REALTIME); }
int64_t rl_monotonic_ns(void) { return read_clock(CLOCK_MONOTONIC); }

char *rl_instant_format(int64_t ns, char *text) {
  int64_t seconds = ns / 1000000000, rest = ns % 1000000000;
  if (rest < 0) {
    rest += 1000000000;
    seconds -= 1;
  }
  time_t when = (time_t)seconds;
  struct tm parts;
  gmtime_r(&when, &parts);
  size_t used = strftime(text, RL_INSTANT_SIZE, "%Y-%m-%dT%H:%M:%S", &parts);
  snprintf(text + used, RL_INSTANT_SIZE - used, ".%09dZ", (int)rest);
  return text;
}

/* Reads exactly `digits` digits and advances *text past them. */
static bool read_number(const char **text, int digits, int *value) {
  *value = 0;
  for (int i = 0; i < digits; i++, (*text)++) {
    if (**text < '0' || **text > '9') return false;
    *value = *value * 10 + (**text - '0');
  }
  return true;
}

/* Advances *text past one character if it is `first` or `second`. Returns whether it was. */
static bool skip_either(const char **text, char first, char second) {
  if (**text != first && **text != second) return false;
  (*text)++;
  return true;
}

static int days_in_month(int year, int month) {
  static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return month == 2 && leap ? 29 : days[month - 1];
}

static bool read_date(const char **text, struct tm *parts) {
  if (!read_number(text, 4, &parts->tm_year) || !skip_either(text, '-', '-') || !read_number(text, 2, &parts->tm_mon) ||
      !skip_either(text, '-', '-') || !read_number(text, 2, &parts->tm_mday))
    return false;
  return parts->tm_mon >= 1 && parts->tm_mon <= 12 && parts->tm_mday >= 1 &&
         parts->tm_mday <= days_in_month(parts->tm_year, parts->tm_mon);
}

/* Reads "hh:mm:ss". Accepts 60 as the seconds, for a leap second. */
static bool read_time(const char **text, struct tm *parts) {
  if (!read_number(text, 2, &parts->tm_hour) || !skip_either(text, ':', ':') || !read_number(text, 2, &parts->tm_min) ||
      !skip_either(text, ':', ':') || !read_number(text, 2, &parts->tm_sec))
    return false;
  return parts->tm_hour <= 23 && parts->tm_min <= 59 && parts->tm_sec <= 60;
}

/* Reads an optional fraction of a second. Ignores digits after the ninth. */
static bool read_fraction(const char **text, int64_t *ns) {
  int64_t unit_ns = 100000000;
  *ns = 0;
  if (!skip_either(text, '.', '.')) return true;
  if (**text < '0' || **text > '9') return false;
  for (; **text >= '0' && **text <= '9'; (*text)++, unit_ns /= 10) *ns += (**text - '0') * unit_ns;
  return true;
}

/* Reads "Z" or an offset from UTC, such as "+02:00". */
static bool read_zone(const char **text, int64_t *offset_s) {
  int hours = 0, minutes = 0;
  *offset_s = 0;
  if (skip_either(text, 'Z', 'z')) return true;
  int sign = **text == '-' ? -1 : 1;
  if (!skip_either(text, '+', '-') || !read_number(text, 2, &hours) || !skip_either(text, ':', ':') ||
      !read_number(text, 2, &minutes) || hours > 23 || minutes > 59)
    return false;
  *offset_s = sign * (hours * 3600 + minutes * 60);
  return true;
}

int rl_instant_parse(const char *text, int64_t *ns) {
  struct tm parts = {0};
  int64_t fraction_ns, offset_s;
  if (!read_date(&text, &parts) || !skip_either(&text, 'T', 't') || !read_time(&text, &parts) ||
      !read_fraction(&text, &fraction_ns) || !read_zone(&text, &offset_s) || *text != '\0')
    return -1;
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  const int64_t seconds = (int64_t)timegm(&parts) - offset_s;
  const __int128 wide_ns = (__int128)seconds * 1000000000 + fraction_ns;
  *ns = wide_ns < INT64_MIN ? INT64_MIN : wide_ns > INT64_MAX ? INT64_MAX : (int64_t)wide_ns;
  return 0;
}
