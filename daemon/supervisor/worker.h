/* A worker process of one device. The device runner starts it and keeps it until it breaks the protocol or has executed posted
 * code. One thread uses a worker; other threads read only the counts of frames and bytes. */
#ifndef RL_SUPERVISOR_WORKER_H
#define RL_SUPERVISOR_WORKER_H

#include "config.h"
#include "base/process.h"
#include "wire/wire.h"

typedef struct rl_worker {
  const char *program, *device, *role; /* borrowed. program: path of the worker; device and role: as in HELLO */
  char build[65];                      /* "": the process runs `program`; else a build that the setting `builds` names */
  const rl_config *config;
  rl_process process; /* pid 0: not started */
  rl_frame_reader *reader;
  bool is_ready;                                   /* the process has sent HELLO */
  int64_t posted_code_job_id;                      /* id of the job whose posted code the process executed; 0: none */
  int64_t last_job_id;                             /* id of the job whose pass the process executed last; 0: none */
  bool may_hold_device;                            /* the worker has executed a pass since the last RELEASE */
  _Atomic int64_t received_frames, received_bytes; /* sums over all processes of this worker */
  char unsupported_engines[sizeof((rl_hello *)0)->unsupported_engines]; /* copied from the last HELLO */
} rl_worker;

/* Starts the process, whose first frame must be HELLO. file: a descriptor that the process inherits as RL_INHERITED_DESCRIPTOR;
 * -1: it has none. Call rl_worker_end even after a failure. Fails with RL_ERRNO, RL_WIRE. */
int rl_worker_start(rl_worker *worker, int file, rl_error *err);
/* Closes the worker's standard input, waits grace_ms for its exit, then kills it. exit_status receives the exit status as text;
 * it is unchanged when no process runs. */
void rl_worker_end(rl_worker *worker, int grace_ms, char exit_status[RL_EXIT_STATUS_SIZE]);
/* Ends an idle worker that sent a frame or closed its pipe: both are protocol errors while no pass runs. Does nothing to a worker
 * that is not ready. */
void rl_worker_verify_idle(rl_worker *worker);
/* Sends RELEASE, so that the worker releases the hardware counters: a worker keeps them reserved between passes, which blocks
 * other profilers. Ends a worker that does not answer with RELEASED within two seconds. */
void rl_worker_release(rl_worker *worker);
/* Returns whether the worker has executed the posted code of a job other than job_id. Such code may have changed anything in its
 * process, so another job needs another process. */
bool rl_worker_has_run_other_posted_code(const rl_worker *worker, int64_t job_id);
/* Ends the process and starts a new one. The caller must read the HELLO of the new process before its first request. If the new
 * process can't be started, logs that; the next pass tries again. */
void rl_worker_replace(rl_worker *worker);
/* Ends a worker that executed a pass of a job other than job_id. Called for jobs that must start with a new process. */
void rl_worker_end_after_other_job(rl_worker *worker, int64_t job_id);

/* Ends the process if it runs another build, and sets the build of the next process. */
void rl_worker_select_build(rl_worker *worker, const char *build);

/* Calls rl_frame_read, and counts the frame and its bytes. */
int rl_worker_read_frame(rl_worker *worker, int timeout_ms, rl_frame *frame, rl_error *err);
/* Checks that a frame is the HELLO of this worker and that the worker is usable. Copies its unsupported_engines. Fails with
 * RL_WIRE if one of these is not the case. */
int rl_worker_check_hello(rl_worker *worker, const rl_frame *frame, rl_error *err);

#endif
