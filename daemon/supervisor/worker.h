/* A resident worker process of one device: started when a pass needs it, then kept until it breaks the protocol or somebody's
 * posted code has run in it. Belongs to one thread, but for the counts. */
#ifndef RL_SUPERVISOR_WORKER_H
#define RL_SUPERVISOR_WORKER_H

#include "config.h"
#include "base/process.h"
#include "wire/wire.h"

typedef struct rl_worker {
  const char *program, *device, *role; /* path; as its hello must name them; borrowed */
  const rl_config *config;
  rl_process process; /* pid 0: not started */
  rl_frame_reader *reader;
  int64_t posted_job;            /* whose posted code it ran, 0: nobody's */
  bool holds;                    /* it has served since it was last asked to let go */
  _Atomic int64_t frames, bytes; /* that its processes have sent */
} rl_worker;

/* What comes first from it is to be its hello. On failure, too, it is to be ended. */
int rl_worker_start(rl_worker *worker, rl_error *err);
/* grace_ms: how long it may take to end by itself; ending stays as it is when none runs. */
void rl_worker_end(rl_worker *worker, int grace_ms, char ending[RL_EXIT_STATUS_SIZE]);
/* Nothing may come while no pass runs: whatever does, an end of file above all, ends the worker. */
void rl_worker_check_idle(rl_worker *worker);
/* Between its passes a worker may keep hardware of the device reserved, so that its next one begins sooner. It is asked to let go
 * before another works there, and when there is nothing to do; one that does not is ended. */
void rl_worker_release(rl_worker *worker);
/* Posted code may leave anything in the memory of the device that its process shares with nobody: what ran it does no other
 * job, be that one's code posted too. */
void rl_worker_recycle(rl_worker *worker, int64_t job_id);

/* Its next frame: like rl_frame_read, and counted. */
int rl_worker_hear(rl_worker *worker, int timeout_ms, rl_frame *frame, rl_error *err);
/* Whether this is the hello of the worker that was started, and it can serve. */
int rl_worker_check_hello(const rl_worker *worker, const rl_frame *frame, rl_error *err);

#endif
