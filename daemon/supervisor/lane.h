/* One device's lane: a thread that takes passes from the queue and has them done by the device's resident workers, one at a time,
 * so that the lane is the device's lease. A worker is started when a pass needs it, killed when it breaks the protocol, ignores a
 * cancel or passes the job's deadline, and started again after a pause (0.25 s doubling to 30 s, reset by an answer). */
#ifndef RL_SUPERVISOR_LANE_H
#define RL_SUPERVISOR_LANE_H

#include "supervisor/fleet.h"

typedef struct rl_lane rl_lane;

bool rl_lane_serves(const char *kind); /* whether there are lanes for this kind of device */

/* Copies program and device; config and jobs must outlive the lane. device: id, kind and facts are those of its hello. */
int rl_lane_open(const char *program, const rl_device_state *device, const rl_config *config, rl_queue *jobs, rl_lane **lane,
                 rl_error *err);
void rl_lane_stop(rl_lane *lane);  /* ask it to end: a pass that runs becomes interrupted */
void rl_lane_close(rl_lane *lane); /* and wait for it; call rl_queue_stop before, so that it does not wait for a claim */
void rl_lane_state(rl_lane *lane, rl_device_state *state);

#endif
