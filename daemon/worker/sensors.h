/* What the device's own sensors say: clocks, temperature, power, memory in use. The CUDA worker links nvml.c, the CPU's
 * sensors_cpu.c. A sensor that can't be read is NAN and the reason stands beside it; nothing here ever fails a pass. */
#ifndef RL_WORKER_SENSORS_H
#define RL_WORKER_SENSORS_H

#include "base/cleanup.h"
#include "model/records.h"

typedef struct rl_sensors rl_sensors;

typedef struct rl_reading {
  double sm_clock_mhz; /* on the CPU: of its first core */
  double memory_clock_mhz, temperature_c, power_w, memory_used_bytes;
  char throttle_reasons[128];  /* comma-separated, "" when none or not known */
  char reason[RL_REASON_SIZE]; /* why what is NAN is NAN */
} rl_reading;

/* device_facts: the JSON of rl_device_facts, in which the GPU's uuid is. NULL only when memory is out: a driver that is
 * missing shows in the readings. */
rl_sensors *rl_sensors_open(const char *device_facts);
void rl_sensors_read(rl_sensors *sensors, rl_reading *reading);
void rl_sensors_close(rl_sensors *sensors);

RL_DEFINE_CLEANUP(rl_sensors_cleanup, rl_sensors *, rl_sensors_close, NULL)
#endif
