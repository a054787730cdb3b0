/* Summarizes clocks, temperature, power and throttling during a pass. Sensors are read right after the timed work. Measurements:
 *
 *   sm_clock_least_mhz, sm_clock_most_mhz          smallest and largest reading
 *   memory_clock_mhz, temperature_c_most, power_w_most   largest reading
 *   throttled_ratio               share of readings with at least one throttle reason; NAN if no reading knows them
 *   throttled_by_REASON_ratio     share of readings with this reason
 *
 * An idle GPU and clock limits that the user has set do not count as throttling. */
#ifndef RL_WORKER_CONDITIONS_H
#define RL_WORKER_CONDITIONS_H

#include "worker/pass.h"

enum { RL_MAX_THROTTLE_REASONS = 16 };

typedef struct rl_conditions {
  double throttle_reading_count; /* readings that know the throttle reasons */
  double clock_min_mhz, clock_max_mhz, memory_clock_max_mhz, temperature_max_c, power_max_w;
  double throttled_count;                             /* readings with at least one throttle reason */
  double throttled_by_count[RL_MAX_THROTTLE_REASONS]; /* readings with reasons[i] */
  char reasons[RL_MAX_THROTTLE_REASONS][32];
  char unavailable_reason[RL_REASON_SIZE]; /* reason why members are NAN */
} rl_conditions;

extern const rl_conditions rl_conditions_empty; /* initial value: no readings */
/* Reads the sensors and updates *conditions. */
void rl_conditions_read(rl_pass_context *pass, rl_conditions *conditions);
int rl_conditions_add_measurements(rl_pass_context *pass, const rl_conditions *conditions, rl_error *err);

#endif
