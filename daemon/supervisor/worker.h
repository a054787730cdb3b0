/* A worker of one device: a process that executes passes, and is replaced by a new process when it has died, breaks the protocol
 * or has executed posted code. Only the device runner's thread uses a worker; other threads only read received_frames and
 * received_bytes. */
#ifndef RL_SUPERVISOR_WORKER_H
#define RL_SUPERVISOR_WORKER_H

#include "config.h"
#include "base/process.h"
#include "model/job.h"
#include "wire/wire.h"

typedef struct rl_worker {
  /* Path of the worker program; device and role as in HELLO. The device runner owns the texts. */
  const char *program, *device, *role;
  /* Name of the build (setting `builds`) whose worker program the process runs; "": the process runs `program`. */
  char build[RL_WORKER_BUILD_SIZE];
  const rl_config *config;
  rl_process process;  /* pid 0: not started */
  rl_process previous; /* killed by rl_worker_kill and not reaped; pid 0: none */
  rl_frame_reader *reader;
  int64_t started_ns;                              /* rl_monotonic_ns at which the process was started */
  bool waits_for_open;                             /* the process opens the device after rl_worker_open_device */
  bool is_ready;                                   /* the process has sent HELLO */
  bool opening_overlapped;                         /* sent to the process in each request (rl_request) */
  int64_t posted_code_job_id;                      /* id of the job whose posted code the process may have executed; 0: none */
  int64_t last_job_id;                             /* id of the job whose pass the process executed last; 0: none */
  bool may_hold_device;                            /* the worker has executed a pass since the last RELEASE */
  _Atomic int64_t received_frames, received_bytes; /* sums over all processes of this worker */
  char unsupported_engines[sizeof((rl_hello *)0)->unsupported_engines]; /* copied from the last HELLO */
} rl_worker;

/* Returns the worker's name in messages: "profiled worker", or "worker" if it executes all passes. */
const char *rl_worker_name(const rl_worker *worker);
/* Starts the process, whose first frame must be HELLO. inherited_fd: a descriptor that the process inherits as
 * RL_INHERITED_DESCRIPTOR; -1: none. Call rl_worker_end even after a failure. Fails with RL_ERRNO or RL_WIRE. */
int rl_worker_start(rl_worker *worker, int inherited_fd, rl_error *err);
/* Closes the worker's standard input, waits grace_ms until the process exits, then kills it. Writes the exit status as text into
 * exit_status; leaves exit_status unchanged when no process runs. */
void rl_worker_end(rl_worker *worker, int grace_ms, char exit_status[RL_EXIT_STATUS_SIZE]);
/* Ends a worker that has sent a frame or closed its pipe since its last pass, because an idle worker must do neither. Does
 * nothing to a worker that is not ready. */
void rl_worker_verify_idle(rl_worker *worker);
/* Sends RELEASE, so that the worker releases the hardware counters. The worker keeps them reserved between passes, and other
 * profilers can't use them meanwhile. Ends a worker that does not answer with RELEASED within two seconds. */
void rl_worker_release(rl_worker *worker);
/* Returns whether the worker has executed the posted code of a job other than job_id. Posted code may have changed anything in
 * its process, so another job needs another process. */
bool rl_worker_has_run_other_posted_code(const rl_worker *worker, int64_t job_id);
/* Starts a process ahead of the first pass that needs it. The process initializes its libraries and waits for
 * rl_worker_open_device. The caller must then read its HELLO before its first request. A failure is only logged; the next pass
 * starts a process again. */
void rl_worker_start_ahead(rl_worker *worker);
/* Kills the process, but does not wait for its exit, which takes 0.2 s if the process has a CUDA context. posted_code_job_id is
 * kept, so that the worker is replaced when the job has ended. */
void rl_worker_kill(rl_worker *worker);
/* Kills the process and starts a new one as rl_worker_start_ahead does. The new process initializes its libraries while the old
 * process exits. If this or another worker then measures the memory of its context, call rl_worker_reap_killed before it opens
 * the device. */
void rl_worker_replace(rl_worker *worker);
/* Waits for the exit of the killed process, so that it no longer holds device memory. Does nothing if there is no killed
 * process. */
void rl_worker_reap_killed(rl_worker *worker);
/* Lets a process that was started ahead open the device. Does nothing if no process waits for that. */
void rl_worker_open_device(rl_worker *worker);
/* Returns whether the process may be opening the device: it has begun to, and its HELLO was not read yet. */
bool rl_worker_is_opening(const rl_worker *worker);
/* Ends a worker that has executed a pass of a job other than job_id. Called for jobs with the option fresh_worker, which must
 * start with a new process. */
void rl_worker_end_after_other_job(rl_worker *worker, int64_t job_id);

/* Ends the process if it runs another build, and sets the build of the next process. */
void rl_worker_select_build(rl_worker *worker, const char *build);

/* Calls rl_frame_read, and counts the frame and its bytes. */
int rl_worker_read_frame(rl_worker *worker, int timeout_ms, rl_frame *frame, rl_error *err);
/* Checks that a frame is a HELLO with the worker's device and role and that the worker is usable; copies its unsupported_engines.
 * Fails with RL_WIRE otherwise. */
int rl_worker_check_hello(rl_worker *worker, const rl_frame *frame, rl_error *err);

#endif
