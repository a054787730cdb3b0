/* The functions of device.h that do not depend on the kind of device: accounting of memory, and cancellation. */
#include "device/device.h"

#include <errno.h>

const char *const rl_memory_purpose_names[] = {"dataset", "weights", "activations", "workspace", NULL};

void rl_memory_usage_add(rl_memory_usage *usage, rl_memory_purpose purpose, size_t bytes) {
  usage->bytes[purpose] += bytes;
  usage->total_bytes += bytes;
  if (usage->bytes[purpose] > usage->peak_bytes[purpose]) usage->peak_bytes[purpose] = usage->bytes[purpose];
  if (usage->total_bytes > usage->peak_total_bytes) usage->peak_total_bytes = usage->total_bytes;
}

void rl_memory_usage_remove(rl_memory_usage *usage, rl_memory_purpose purpose, size_t bytes) {
  usage->bytes[purpose] -= bytes;
  usage->total_bytes -= bytes;
}

int rl_observer_check_cancellation(const rl_observer *observer, rl_error *err) {
  bool cancelled = observer && observer->cancelled && observer->cancelled(observer->context);
  return cancelled ? rl_fail(err, RL_ERRNO, ECANCELED, "cancelled") : 0;
}

int rl_device_check_cancellation(const rl_device *device, rl_error *err) {
  return rl_observer_check_cancellation(device->observer, err);
}
