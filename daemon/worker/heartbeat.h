/* The HEARTBEAT frames of a worker: a thread sends one every 5 s while the main thread executes a request. So that the daemon
 * notices a main thread that hangs, a frame carries the stage, the time since the main thread last passed a check point, and the
 * longest time that is allowed. Check points: polls for cancellation, progress, a new stage, a written frame. The limit is
 * minutes. It falls to 30 s when the process uses no CPU time; on a GPU only in iterations (the stages warmup, epoch and
 * evaluate), where the driver spins while it waits for a launch. */
#ifndef RL_WORKER_HEARTBEAT_H
#define RL_WORKER_HEARTBEAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Starts the thread, which writes to this descriptor. failed is called in it when a write fails. RL_ERRNO. */
int rl_heartbeat_start(int descriptor, bool computes_on_cpu, void (*failed)(const rl_error *err), rl_error *err);
/* A request begins: HEARTBEAT frames may be sent from now on. */
void rl_heartbeat_begin_request(void);
/* A request ends: no HEARTBEAT frame is sent from now on. Called with the frames locked, before the last frame of the request. */
void rl_heartbeat_end_request(void);
/* The main thread begins a stage of the request: "open", or a phase of rl_progress. */
void rl_heartbeat_enter_stage(const char *stage);
/* Returns how long the main thread may take between two check points. quiet_beats: the number of beats in a row without CPU time.
 * Steps of iterations poll often, but one large launch on a slow CPU takes a minute. Opening compiles posted code and loads
 * libraries and data; other stages wait for single launches and replays of any length, and for the profiler's analysis. */
int64_t rl_heartbeat_limit_ms(bool computes_on_cpu, const char *stage, int quiet_beats);
/* The main thread has passed a check point. */
void rl_heartbeat_check_point(void);
/* Frames of the main thread are written between these calls. Unlocking is a check point. */
void rl_heartbeat_lock_frames(void);
void rl_heartbeat_unlock_frames(void);

#endif
