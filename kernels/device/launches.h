/* What running a list of launches is on every kind of device. Of the device's thread. 0, or -1 with err. */
#ifndef RL_DEVICE_LAUNCHES_H
#define RL_DEVICE_LAUNCHES_H

#include "device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An error begins with the launch's name. */
int rl_launch_enqueue(const rl_launch *launch, rl_stream stream, rl_error *err);
/* What goes before a repeat, if anything does. */
int rl_sequence_restore(const rl_sequence *sequence, rl_stream stream, rl_error *err);
/* One repeat: a range for each run of launches of one phase, one inside it for each launch. The observer (NULL: nobody) is asked
 * before each launch and shown its span. */
int rl_sequence_once(const rl_sequence *sequence, rl_stream stream, const rl_observer *observer, rl_error *err);
/* -1 with RL_SYS, ECANCELED when the observer, if there is one, says so. */
int rl_observer_cancelled(const rl_observer *observer, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
