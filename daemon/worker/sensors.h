/* A device's sensors: clocks, temperature, power, used memory, and the processes that use the device. The CUDA worker links
 * nvml.c, the CPU worker sensors_cpu.c. The value of a sensor that cannot be read is NAN, with a reason; a sensor that fails does
 * not fail the pass. */
#ifndef RL_WORKER_SENSORS_H
#define RL_WORKER_SENSORS_H

#include "base/cleanup.h"
#include "model/records.h"
#include "worker/processor_times.h"

typedef struct rl_sensors rl_sensors;

typedef struct rl_sensor_reading {
  double sm_clock_mhz; /* clock of the SMs; on the CPU, clock of the first core */
  double memory_clock_mhz, temperature_c, power_w, memory_used_bytes;
  bool throttle_known;         /* throttle_reasons were read */
  char throttle_reasons[128];  /* comma-separated; "" when there are none or they are unknown */
  char reason[RL_REASON_SIZE]; /* reason why values are NAN or throttle_reasons are unknown */
} rl_sensor_reading;

/* Opens the sensors. device_properties: the JSON object of rl_device_properties, which contains the GPU's UUID. Returns NULL only
 * when memory is out. If the driver is missing, readings are NAN with that reason. */
rl_sensors *rl_sensors_open(const char *device_properties);
void rl_sensors_read(rl_sensors *sensors, rl_sensor_reading *reading);
/* Returns the device memory in use, in bytes; NAN: unknown. Reads only this value, because each sensor takes a driver call. */
double rl_sensors_read_used_bytes(rl_sensors *sensors);
/* Use of the device by other processes: on a GPU the processes with a compute context, besides this worker and the daemon's other
 * workers; on the CPU the times of the processors. */
enum { RL_SENSORS_PROCESSES_MAX = 64 };
typedef struct rl_other_process {
  unsigned pid;
  double memory_bytes; /* device memory that the process uses; NAN: NVML does not know it */
} rl_other_process;
typedef struct rl_other_processes {
  rl_other_process items[RL_SENSORS_PROCESSES_MAX];
  size_t count;
  char reason[RL_REASON_SIZE]; /* reason why the processes are unknown; "": they are known */
  rl_processor_times processor_times;
  char processor_times_reason[RL_REASON_SIZE]; /* reason why processor_times are unknown; "": they are known */
} rl_other_processes;
/* Reads the use of the device by other processes. Call it while this process has a context on the device: NVML lists the
 * processes of one PID namespace. If this process is not among them, NVML reads another namespace, so the processes are unknown.
 */
void rl_sensors_read_other_processes(rl_sensors *sensors, rl_other_processes *processes);
void rl_sensors_close(rl_sensors *sensors);

RL_DEFINE_CLEANUP(rl_sensors_cleanup, rl_sensors *, rl_sensors_close, NULL)
#endif
