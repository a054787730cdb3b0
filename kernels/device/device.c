#include "device/device.h"

#include <errno.h>

const char *const rl_memory_purpose_names[] = {"dataset", "weights", "activations", "workspace", NULL};

void rl_memory_add(rl_memory *memory, rl_memory_purpose purpose, size_t bytes) {
  memory->bytes[purpose] += bytes;
  memory->total_bytes += bytes;
  if (memory->bytes[purpose] > memory->peak_bytes[purpose]) memory->peak_bytes[purpose] = memory->bytes[purpose];
  if (memory->total_bytes > memory->peak_total_bytes) memory->peak_total_bytes = memory->total_bytes;
}

void rl_memory_remove(rl_memory *memory, rl_memory_purpose purpose, size_t bytes) {
  memory->bytes[purpose] -= bytes;
  memory->total_bytes -= bytes;
}

int rl_observer_cancelled(const rl_observer *observer, rl_error *err) {
  bool cancelled = observer && observer->cancelled && observer->cancelled(observer->context);
  return cancelled ? rl_fail(err, RL_SYS, ECANCELED, "cancelled") : 0;
}

int rl_device_cancelled(const rl_device *device, rl_error *err) { return rl_observer_cancelled(device->observer, err); }
