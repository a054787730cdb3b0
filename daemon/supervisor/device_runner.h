/* A device runner is the thread that serves one device. The thread claims passes from the queue, and the device's worker
 * processes execute them, one pass at a time. The runner starts a worker when a pass needs one. The workers of a job with posted
 * code must not execute another job, so the runner replaces them when that job has ended. It ends the worker of the timing passes
 * before the job's other passes. The runner kills a worker that breaks the protocol, ignores a cancellation or exceeds the job's
 * deadline. After a crash the runner pauses before it starts a worker again: 0.25 s, doubled by each further crash up to 30 s. A
 * finished pass resets the pause.
 *
 * A spare worker is started before a pass needs it. If its HELLO is late, it is ended before the next pass. The runner then
 * pauses in the same way before it starts a spare worker of this role again, but a worker that a pass needs starts at once. */
#ifndef RL_SUPERVISOR_DEVICE_RUNNER_H
#define RL_SUPERVISOR_DEVICE_RUNNER_H

#include <stdbool.h>

#include "config.h"
#include "queue/queue.h"
#include "supervisor/device_state.h"
#include "upload/spool.h"

typedef struct rl_device_runner rl_device_runner;

/* Returns whether this daemon can run devices of this kind: "cpu", "cuda" or "import". */
bool rl_device_runner_supports(const char *kind);

/* The parts of the daemon that all runners share; they must outlive the runners. */
typedef struct rl_runner_services {
  const rl_config *config;
  rl_queue *jobs;
  rl_upload_spool *uploads; /* uploaded trace files; NULL: this daemon imports no traces */
} rl_runner_services;

/* Starts the thread of a device. program: path of the device's worker program. device: has the id, kind and properties from the
 * worker's HELLO. program and *device are copied. Fails with RL_INPUT when the kind is not supported, and with RL_ERRNO when
 * memory or threads are exhausted. */
int rl_device_runner_open(const char *program, const rl_device_state *device, const rl_runner_services *services,
                          rl_device_runner **runner, rl_error *err);
/* Makes the thread end, but does not wait for it. If a pass is running, its job becomes interrupted. */
void rl_device_runner_stop(rl_device_runner *runner);
/* Stops the thread and waits until it has ended. Call rl_queue_stop before, so that the thread does not wait for a pass. Does
 * nothing when runner is NULL. */
void rl_device_runner_close(rl_device_runner *runner);
/* Copies the device's current state. */
void rl_device_runner_state(rl_device_runner *runner, rl_device_state *state);

#endif
