/* Finds the installed worker programs, runs each with --list to get its devices, and starts a device runner (device_runner.h) for
 * each usable device. The daemon's main function opens and closes the supervisor; HTTP handlers read the states of the
 * devices. */
#ifndef RL_SUPERVISOR_SUPERVISOR_H
#define RL_SUPERVISOR_SUPERVISOR_H

#include "base/cleanup.h"
#include "config.h"
#include "queue/queue.h"
#include "supervisor/device_state.h"
#include "upload/spool.h"

typedef struct rl_supervisor rl_supervisor;

/* Lists the devices of every program rooflined-worker-* in the folder of the setting `workers`, passes them to the queue, and
 * starts a device runner for each usable device. A device whose worker does not work is listed as unusable with the reason. If
 * uploads is not NULL, also starts a runner for the importer (rooflined-import in the same folder); uploads must outlive the
 * supervisor. Fails with RL_ERRNO if memory or threads are exhausted, and with EINTR if a stop signal is pending
 * (base/stop_signal.h). */
int rl_supervisor_open(const rl_config *config, rl_queue *jobs, rl_upload_spool *uploads, rl_supervisor **supervisor,
                       rl_error *err);
/* Makes the runners stop, but does not wait until they have stopped. */
void rl_supervisor_stop(rl_supervisor *supervisor);
/* Interrupts running passes and ends all workers, within about one second. Does nothing when supervisor is NULL. */
void rl_supervisor_close(rl_supervisor *supervisor);

/* Fails with RL_HTTP 503 and the reason if traces can't be imported. */
int rl_supervisor_check_importer(rl_supervisor *supervisor, rl_error *err);

/* Copies the states of at most `capacity` devices to `states`. Returns the number of devices, at most RL_DEVICES_MAX. */
int rl_supervisor_devices(rl_supervisor *supervisor, rl_device_state *states, int capacity);

RL_DEFINE_CLEANUP(rl_supervisor_cleanup, rl_supervisor *, rl_supervisor_close, NULL)
#endif
