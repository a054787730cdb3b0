/* The HEARTBEAT frames of a worker, which a thread sends every few seconds while the main thread executes a request. They carry
 * the stage and the time since the main thread last passed a check point, because a thread that only beats would hide that the
 * main thread hangs. Check points: polls for cancellation, progress, a new stage, a written frame. A stage may take minutes
 * between two of them. On the CPU, a main thread that waits is noticed sooner: after 30 s without a check point in which the
 * process has used no CPU time. On a GPU it may wait that long for a launch. */
#ifndef RL_WORKER_HEARTBEAT_H
#define RL_WORKER_HEARTBEAT_H

#include <stdbool.h>

#include "base/error.h"

/* Starts the thread, which writes to this descriptor. failed is called in it when a write fails. RL_ERRNO. */
int rl_heartbeat_start(int descriptor, bool computes_on_cpu, void (*failed)(const rl_error *err), rl_error *err);
/* A request begins: HEARTBEAT frames may be sent from now on. */
void rl_heartbeat_begin_request(void);
/* No HEARTBEAT frame is sent from now on. Called with the frames locked, before the last frame of the request. */
void rl_heartbeat_end_request(void);
/* The main thread begins a stage of the request: "open", or a phase of rl_progress. */
void rl_heartbeat_enter_stage(const char *stage);
/* The main thread has passed a check point. */
void rl_heartbeat_check_point(void);
/* Frames of the main thread are written between these calls. Unlocking is a check point. */
void rl_heartbeat_lock_frames(void);
void rl_heartbeat_unlock_frames(void);

#endif
