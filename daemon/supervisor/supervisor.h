/* Finds the installed worker programs, asks each for its devices, and runs a thread for each usable device (device_runner.h). */
#ifndef RL_SUPERVISOR_SUPERVISOR_H
#define RL_SUPERVISOR_SUPERVISOR_H

#include "base/cleanup.h"
#include "config.h"
#include "queue/queue.h"
#include "supervisor/device_state.h"
#include "upload/spool.h"

typedef struct rl_supervisor rl_supervisor;

/* Lists the devices of every rooflined-worker-* in the configured folder, gives them to the queue, and starts a device runner for
 * each usable one. A worker that cannot serve is listed with its reason. With uploads, which outlive the supervisor, also starts
 * a runner for the importer, rooflined-import in the same folder. RL_ERRNO: no memory or thread. */
int rl_supervisor_open(const rl_config *config, rl_queue *jobs, rl_upload_spool *uploads, rl_supervisor **supervisor,
                       rl_error *err);
/* Begins what rl_supervisor_close does, without waiting for it. */
void rl_supervisor_stop(rl_supervisor *supervisor);
/* Interrupts running passes and ends all workers, within about one second. NULL: nothing. */
void rl_supervisor_close(rl_supervisor *supervisor);

/* Fails with RL_HTTP 503 and the reason if traces can't be imported. */
int rl_supervisor_check_importer(rl_supervisor *supervisor, rl_error *err);

/* Copies at most capacity states. Returns the number of devices, at most RL_DEVICES_MAX. */
int rl_supervisor_devices(rl_supervisor *supervisor, rl_device_state *states, int capacity);

RL_DEFINE_CLEANUP(rl_supervisor_cleanup, rl_supervisor *, rl_supervisor_close, NULL)
#endif
