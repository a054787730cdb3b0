/* A worker process of one device: started when a pass needs it, or ahead of that (device_runner.h), and kept until it breaks the
 * protocol or has executed posted code. Belongs to one thread; only the counts are read by others. */
#ifndef RL_SUPERVISOR_WORKER_H
#define RL_SUPERVISOR_WORKER_H

#include "config.h"
#include "base/process.h"
#include "wire/wire.h"

typedef struct rl_worker {
  const char *program, *device, *role; /* path; device and role as in its HELLO; borrowed */
  char build[65];                      /* of its process: "": program; else a name of the setting `builds` */
  const rl_config *config;
  rl_process process; /* pid 0: not started */
  rl_frame_reader *reader;
  bool is_ready;                                                        /* its process has sent HELLO */
  int64_t posted_job;                                                   /* job whose posted code it executed; 0: none */
  int64_t last_job;                                                     /* job whose pass it executed last; 0: none */
  bool may_hold_device;                                                 /* it executed a pass since its last RELEASE */
  _Atomic int64_t frames, bytes;                                        /* received from its processes */
  char unsupported_engines[sizeof((rl_hello *)0)->unsupported_engines]; /* of its last HELLO */
} rl_worker;

/* Starts the process, whose first frame must be HELLO. file: the process inherits it (RL_INHERITED_DESCRIPTOR); -1: none. Call
 * rl_worker_end after a failure too. RL_ERRNO, RL_WIRE. */
int rl_worker_start(rl_worker *worker, int file, rl_error *err);
/* Closes the worker's input, waits grace_ms, then kills it. exit_status receives the exit status as text; unchanged when no
 * process runs. */
void rl_worker_end(rl_worker *worker, int grace_ms, char exit_status[RL_EXIT_STATUS_SIZE]);
/* Ends an idle worker that sent a frame or closed its pipe: both are protocol errors while no pass runs. Does nothing to a worker
 * that is not ready. */
void rl_worker_verify_idle(rl_worker *worker);
/* Sends RELEASE: a worker keeps hardware counters reserved between passes, which blocks other profilers. Ends a worker that does
 * not answer RELEASED within two seconds. */
void rl_worker_release(rl_worker *worker);
/* Returns whether the worker has executed the posted code of a job other than job_id. Such code may have changed anything in its
 * process, so another job needs another process. */
bool rl_worker_has_run_other_posted_code(const rl_worker *worker, int64_t job_id);
/* Ends a worker and starts its successor, whose HELLO has to be read before its first request. A successor that can't be started
 * is logged; the next pass tries again. */
void rl_worker_replace(rl_worker *worker);
/* Ends a worker that executed a pass of a job other than job_id, which asks for a fresh worker. */
void rl_worker_end_after_other_job(rl_worker *worker, int64_t job_id);

/* Ends a worker of another build, and sets the build of its next process. */
void rl_worker_select_build(rl_worker *worker, const char *build);

/* As rl_frame_read, and counts the frame and its bytes. */
int rl_worker_read_frame(rl_worker *worker, int timeout_ms, rl_frame *frame, rl_error *err);
/* Checks that a frame is the HELLO of this worker and that it can serve; keeps its unsupported_engines. RL_WIRE. */
int rl_worker_check_hello(rl_worker *worker, const rl_frame *frame, rl_error *err);

#endif
