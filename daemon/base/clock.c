#include "base/clock.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int64_t read_clock(clockid_t id) {
  struct timespec now;
  clock_gettime(id, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t rl_now_ns(void) { return read_clock(CLOCK_REALTIME); }
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

int rl_instant_parse(const char *text, int64_t *ns) {
  struct tm parts = {0};
  int used = 0;
  char zone = 0;
  if (sscanf(text, "%4d-%2d-%2d%c%2d:%2d:%2d%n", &parts.tm_year, &parts.tm_mon, &parts.tm_mday, &zone, &parts.tm_hour,
             &parts.tm_min, &parts.tm_sec, &used) != 7 ||
      (zone != 'T' && zone != 't'))
    return -1;
  if (parts.tm_year < 1970 || parts.tm_year > 2261 || parts.tm_mon < 1 || parts.tm_mon > 12 || parts.tm_mday < 1 ||
      parts.tm_mday > 31 || parts.tm_hour < 0 || parts.tm_hour > 23 || parts.tm_min < 0 || parts.tm_min > 59 ||
      parts.tm_sec < 0 || parts.tm_sec > 60)
    return -1;
  const char *rest = text + used;
  int64_t fraction = 0;
  if (*rest == '.') {
    int digits = 0;
    for (rest++; isdigit((unsigned char)*rest); rest++, digits++)
      if (digits < 9) fraction = fraction * 10 + (*rest - '0');
    if (digits == 0) return -1;
    for (; digits < 9; digits++) fraction *= 10;
  }
  int64_t offset_s = 0;
  if ((*rest == 'Z' || *rest == 'z') && rest[1] == '\0') {
  } else {
    int hours = 0, minutes = 0, length = 0;
    char sign = *rest;
    if ((sign != '+' && sign != '-') || sscanf(rest + 1, "%2d:%2d%n", &hours, &minutes, &length) != 2 ||
        rest[1 + length] != '\0' || hours > 23 || minutes > 59)
      return -1;
    offset_s = (sign == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
  }
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  *ns = ((int64_t)timegm(&parts) - offset_s) * 1000000000 + fraction;
  return 0;
}
