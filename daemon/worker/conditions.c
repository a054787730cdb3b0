#include "worker/conditions.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "worker/pass.h"

const rl_conditions rl_conditions_unread = {
    .clock_least = NAN, .clock_most = NAN, .memory_clock = NAN, .temperature = NAN, .power = NAN};

/* An idle device, or one whose owner set its clocks, is not slowed down. */
static bool slows_down(const char *reason) {
  return strcmp(reason, "gpu_idle") != 0 && strcmp(reason, "applications_clocks_setting") != 0;
}

static void count_reason(rl_conditions *seen, const char *reason) {
  int i = 0;
  while (i < RL_THROTTLE_REASONS && seen->reasons[i][0] && strcmp(seen->reasons[i], reason) != 0) i++;
  if (i == RL_THROTTLE_REASONS) return;
  snprintf(seen->reasons[i], sizeof seen->reasons[i], "%s", reason);
  seen->by[i]++;
}

static void count_reasons(rl_conditions *seen, const char *list) {
  bool slowed = false;
  char reason[32];
  for (const char *at = list; *at;) {
    size_t length = strcspn(at, ",");
    snprintf(reason, sizeof reason, "%.*s", (int)length, at);
    if (slows_down(reason)) {
      count_reason(seen, reason);
      slowed = true;
    }
    at += length + (at[length] == ',');
  }
  seen->throttled += slowed;
}

void rl_conditions_look(rl_session *session, rl_conditions *seen) {
  rl_reading now;
  rl_sensors_read(session->sensors, &now);
  seen->readings++;
  seen->clock_least = fmin(seen->clock_least, now.sm_clock_mhz); /* of a number and a NAN: the number */
  seen->clock_most = fmax(seen->clock_most, now.sm_clock_mhz);
  seen->memory_clock = fmax(seen->memory_clock, now.memory_clock_mhz);
  seen->temperature = fmax(seen->temperature, now.temperature_c);
  seen->power = fmax(seen->power, now.power_w);
  count_reasons(seen, now.throttle_reasons);
  if (now.reason[0]) snprintf(seen->unread, sizeof seen->unread, "%s", now.reason);
}

int rl_conditions_measure(rl_session *session, const rl_conditions *seen, rl_error *err) {
  const double throttled = isnan(seen->clock_most) ? NAN : seen->throttled / seen->readings;
  char name[RL_NAME_SIZE];
  if (rl_pass_measure(session, "sm_clock_least_mhz", seen->clock_least, seen->unread, err) ||
      rl_pass_measure(session, "sm_clock_most_mhz", seen->clock_most, seen->unread, err) ||
      rl_pass_measure(session, "memory_clock_mhz", seen->memory_clock, seen->unread, err) ||
      rl_pass_measure(session, "temperature_c_most", seen->temperature, seen->unread, err) ||
      rl_pass_measure(session, "power_w_most", seen->power, seen->unread, err) ||
      rl_pass_measure(session, "throttled_ratio", throttled, seen->unread, err))
    return -1;
  for (int i = 0; i < RL_THROTTLE_REASONS && seen->reasons[i][0]; i++) {
    snprintf(name, sizeof name, "throttled_by_%s_ratio", seen->reasons[i]);
    if (rl_pass_measure(session, name, seen->by[i] / seen->readings, NULL, err)) return -1;
  }
  return 0;
}
