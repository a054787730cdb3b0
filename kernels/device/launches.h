/* Functions that enqueue launches one by one, on any kind of device. Call them on the device's thread. Those that return int
 * return 0, or -1 with err. */
#ifndef RL_DEVICE_LAUNCHES_H
#define RL_DEVICE_LAUNCHES_H

#include "device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Enqueues a launch. Error messages begin with the launch's name. */
int rl_launch_enqueue(const rl_launch *launch, rl_stream stream, rl_error *err);
/* Enqueues the sequence's restore_launch, if it has one. */
int rl_sequence_restore(const rl_sequence *sequence, rl_stream stream, rl_error *err);
/* Enqueues the sequence's check_launch, if it has one. */
int rl_sequence_check(const rl_sequence *sequence, rl_stream stream, rl_error *err);
/* Sleeps for the sequence's pause_ms. */
void rl_sequence_pause(const rl_sequence *sequence);
/* Enqueues the restore_launch and then one repeat of the sequence. Consecutive launches with the same nvtx_range share that
 * range, and each launch has a nested range with its name. Before each launch, checks whether the observer (NULL: none) cancels;
 * after each launch, reports its span to the observer. */
int rl_sequence_run_once(const rl_sequence *sequence, rl_stream stream, const rl_observer *observer, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
