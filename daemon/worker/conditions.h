/* Under which conditions a pass took its times. The sensors are read right after what is timed, while the device is as it was,
 * and what they said becomes measurements:
 *
 *   sm_clock_least_mhz, sm_clock_most_mhz, memory_clock_mhz, temperature_c_most, power_w_most   of the readings
 *   throttled_ratio               the share of the readings at which the device was slowed down, whatever the cause
 *   throttled_by_REASON_ratio     the same, for each cause that was seen */
#ifndef RL_WORKER_CONDITIONS_H
#define RL_WORKER_CONDITIONS_H

#include "worker/session.h"

enum { RL_THROTTLE_REASONS = 16 };

typedef struct rl_conditions {
  double readings, clock_least, clock_most, memory_clock, temperature, power;
  double throttled, by[RL_THROTTLE_REASONS]; /* readings at which it was so */
  char reasons[RL_THROTTLE_REASONS][32];
  char unread[RL_REASON_SIZE]; /* why what is NAN is NAN */
} rl_conditions;

extern const rl_conditions rl_conditions_unread; /* to begin with */
void rl_conditions_look(rl_session *session, rl_conditions *seen);
int rl_conditions_measure(rl_session *session, const rl_conditions *seen, rl_error *err);

#endif
