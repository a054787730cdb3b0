/* Accumulates minima, maxima and counts of throttle reasons over the readings of a pass. */
#include "worker/conditions.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "worker/pass.h"

const rl_conditions rl_conditions_empty = {
    .clock_min_mhz = NAN, .clock_max_mhz = NAN, .memory_clock_max_mhz = NAN, .temperature_max_c = NAN, .power_max_w = NAN};

/* Returns false for reasons that do not mean throttling: an idle GPU, and clock limits set by the user. */
static bool is_throttling(const char *reason) {
  return strcmp(reason, "gpu_idle") != 0 && strcmp(reason, "applications_clocks_setting") != 0;
}

static void count_reason(rl_conditions *conditions, const char *reason) {
  int i = 0;
  while (i < RL_MAX_THROTTLE_REASONS && conditions->reasons[i][0] && strcmp(conditions->reasons[i], reason) != 0) i++;
  if (i == RL_MAX_THROTTLE_REASONS) return;
  snprintf(conditions->reasons[i], sizeof conditions->reasons[i], "%s", reason);
  conditions->throttled_by_count[i]++;
}

static void count_reasons(rl_conditions *conditions, const char *list) {
  bool throttled = false;
  char reason[32];
  for (const char *word = list; *word;) {
    size_t length = strcspn(word, ",");
    snprintf(reason, sizeof reason, "%.*s", (int)length, word);
    if (is_throttling(reason)) {
      count_reason(conditions, reason);
      throttled = true;
    }
    word += length + (word[length] == ',');
  }
  conditions->throttled_count += throttled;
}

void rl_conditions_read(rl_pass_context *pass, rl_conditions *conditions) {
  rl_sensor_reading reading;
  rl_sensors_read(pass->sensors, &reading);
  conditions->clock_min_mhz = fmin(conditions->clock_min_mhz, reading.sm_clock_mhz); /* fmin ignores NAN */
  conditions->clock_max_mhz = fmax(conditions->clock_max_mhz, reading.sm_clock_mhz);
  conditions->memory_clock_max_mhz = fmax(conditions->memory_clock_max_mhz, reading.memory_clock_mhz);
  conditions->temperature_max_c = fmax(conditions->temperature_max_c, reading.temperature_c);
  conditions->power_max_w = fmax(conditions->power_max_w, reading.power_w);
  conditions->throttle_reading_count += reading.throttle_known;
  count_reasons(conditions, reading.throttle_reasons);
  if (reading.reason[0]) snprintf(conditions->unavailable_reason, sizeof conditions->unavailable_reason, "%s", reading.reason);
}

int rl_conditions_add_measurements(rl_pass_context *pass, const rl_conditions *conditions, rl_error *err) {
  const double count = conditions->throttle_reading_count;
  const double throttled_ratio = count > 0 ? conditions->throttled_count / count : NAN;
  char name[RL_NAME_SIZE];
  const char *reason = conditions->unavailable_reason;
  const rl_named_value values[] = {{"sm_clock_least_mhz", conditions->clock_min_mhz, reason},
                                   {"sm_clock_most_mhz", conditions->clock_max_mhz, reason},
                                   {"memory_clock_mhz", conditions->memory_clock_max_mhz, reason},
                                   {"temperature_c_most", conditions->temperature_max_c, reason},
                                   {"power_w_most", conditions->power_max_w, reason},
                                   {"throttled_ratio", throttled_ratio, reason}};
  if (rl_pass_add_measurements(pass, values, sizeof values / sizeof *values, err) < 0) return -1;
  for (int i = 0; i < RL_MAX_THROTTLE_REASONS && conditions->reasons[i][0]; i++) {
    snprintf(name, sizeof name, "throttled_by_%s_ratio", conditions->reasons[i]);
    if (rl_pass_add_measurement(pass, name, conditions->throttled_by_count[i] / count, NULL, err) < 0) return -1;
  }
  return 0;
}
