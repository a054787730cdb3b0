/* What the device can do at best, with no profiler attached: for each rate of the instance the best of its launch's samples,
 * which follow one another closely and begin once the device is warm. The conditions they were taken under are measurements too:
 *
 *   sm_clock_least_mhz, sm_clock_most_mhz, memory_clock_mhz, temperature_c_most, power_w_most   of the readings after each rate
 *   throttled_ratio               the share of those readings at which the device was slowed down, whatever the cause
 *   throttled_by_REASON_ratio     the same, for each cause that was seen */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/statistics.h"
#include "worker/pass.h"

enum { REASONS_MOST = 16 };

RL_DEFINE_CLEANUP(free_times, double *, free, NULL)

/* --- conditions ------------------------------------------------------------------------------------------------------ */

typedef struct conditions {
  double readings, clock_least, clock_most, memory_clock, temperature, power;
  double throttled, by[REASONS_MOST]; /* readings at which it was so */
  char reasons[REASONS_MOST][32];
  char unread[RL_REASON_SIZE]; /* why what is NAN is NAN */
} conditions;

/* An idle device, or one whose owner set its clocks, is not slowed down. */
static bool slows_down(const char *reason) {
  return strcmp(reason, "gpu_idle") != 0 && strcmp(reason, "applications_clocks_setting") != 0;
}

static void count_reason(conditions *seen, const char *reason) {
  int i = 0;
  while (i < REASONS_MOST && seen->reasons[i][0] && strcmp(seen->reasons[i], reason) != 0) i++;
  if (i == REASONS_MOST) return;
  snprintf(seen->reasons[i], sizeof seen->reasons[i], "%s", reason);
  seen->by[i]++;
}

static void count_reasons(conditions *seen, const char *list) {
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

static void look(rl_session *session, conditions *seen) {
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

static int measure_conditions(rl_session *session, const conditions *seen, rl_error *err) {
  const double throttled = isnan(seen->clock_most) ? NAN : seen->throttled / seen->readings;
  char name[RL_NAME_SIZE];
  if (rl_pass_measure(session, "sm_clock_least_mhz", seen->clock_least, seen->unread, err) ||
      rl_pass_measure(session, "sm_clock_most_mhz", seen->clock_most, seen->unread, err) ||
      rl_pass_measure(session, "memory_clock_mhz", seen->memory_clock, seen->unread, err) ||
      rl_pass_measure(session, "temperature_c_most", seen->temperature, seen->unread, err) ||
      rl_pass_measure(session, "power_w_most", seen->power, seen->unread, err) ||
      rl_pass_measure(session, "throttled_ratio", throttled, seen->unread, err))
    return -1;
  for (int i = 0; i < REASONS_MOST && seen->reasons[i][0]; i++) {
    snprintf(name, sizeof name, "throttled_by_%s_ratio", seen->reasons[i]);
    if (rl_pass_measure(session, name, seen->by[i] / seen->readings, NULL, err)) return -1;
  }
  return 0;
}

/* --- rates ------------------------------------------------------------------------------------------------------------ */

/* us[count] is scratch. */
static int measure_rate(rl_session *session, const rl_rate *rate, uint32_t count, double *us, rl_error *err) {
  const rl_sequence alone = {rate->name, rate->launch, 1, 1};
  if (!rate->launch) return rl_pass_measure(session, rate->name, NAN, rate->reason, err);
  if (session->device->ops->sample(session->device, &alone, RL_CACHE_WARM, count, &session->observer, us, err)) return -1;
  return rl_pass_measure(session, rate->name, rate->amount / (rl_summarize(us, count).minimum * 1e-6), NULL, err);
}

int rl_time_rates(rl_session *session, rl_error *err) {
  const rl_instance *instance = session->instance;
  conditions seen = {.clock_least = NAN, .clock_most = NAN, .memory_clock = NAN, .temperature = NAN, .power = NAN};
  uint32_t warmup, count = 1;
  if (session->workload->schedule) session->workload->schedule(session->params, &warmup, &count);
  rl_auto(free_times) double *us = malloc(count * sizeof *us);
  if (!us) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for the samples");
  session->units = (double)instance->rate_count;
  for (size_t i = 0; i < instance->rate_count; i++) {
    rl_pass_enter(session, "samples", (int64_t)i, (int64_t)instance->rate_count);
    if (measure_rate(session, &instance->rates[i], count, us, err)) return -1;
    if (instance->rates[i].launch) look(session, &seen);
    rl_pass_unit_done(session);
  }
  return measure_conditions(session, &seen, err) || rl_pass_measure_memory(session, err) ? -1 : 0;
}
