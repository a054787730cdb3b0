/* Sends the HEARTBEAT frames of a worker, by which the daemon notices a main thread that hangs. A separate thread sends one every
 * 5 s while the main thread executes a request. A frame contains the stage of the request, the time since the main thread last
 * passed a check point, and the limit for that time. The main thread passes a check point when it polls for cancellation, reports
 * progress, enters a stage or writes a frame. The limit is 5 or 15 minutes, depending on the stage. It falls to 29 s when the
 * process has used almost no CPU time before each of the last six frames. For a GPU it falls only in the stages warmup, epoch and
 * evaluate, where the driver spins while it waits for a launch. For the CPU it falls in every stage except "open". */
#ifndef RL_WORKER_HEARTBEAT_H
#define RL_WORKER_HEARTBEAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Starts the heartbeat thread, which writes to this descriptor and calls `failed` when a write fails. Fails with RL_ERRNO if
 * the thread can't be started. */
int rl_heartbeat_start(int descriptor, bool computes_on_cpu, void (*failed)(const rl_error *err), rl_error *err);
/* Begins a request: HEARTBEAT frames may be sent from now on. */
void rl_heartbeat_begin_request(void);
/* Ends a request: no HEARTBEAT frame is sent from now on. Call it with the frames locked, before the last frame of the
 * request. */
void rl_heartbeat_end_request(void);
/* Begins a stage of the request: "open", or a phase of rl_progress. Passes a check point. Call it from the main thread. */
void rl_heartbeat_enter_stage(const char *stage);
/* Returns how long the main thread may take between two check points. quiet_beats: number of consecutive HEARTBEAT intervals, up
 * to now, in which the process used almost no CPU time. The limit is long because one large launch on a slow CPU takes a minute,
 * opening an instance compiles posted code and loads libraries and data, and replays for the profiler have no fixed length. */
int64_t rl_heartbeat_limit_ms(bool computes_on_cpu, const char *stage, int quiet_beats);
/* Passes a check point. Call it from the main thread. */
void rl_heartbeat_check_point(void);
/* Lock and unlock the writing of frames. The main thread writes frames only between these two calls. Unlocking passes a check
 * point. */
void rl_heartbeat_lock_frames(void);
void rl_heartbeat_unlock_frames(void);

#endif
