/* Implements sensors.h for the CPU: the clock of the first core and the times of the processors, which can be read without
 * privileges. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "worker/sensors.h"

struct rl_sensors {
  char clock_path[64];
};

RL_DEFINE_CLEANUP(close_file, FILE *, fclose, NULL)

rl_sensors *rl_sensors_open(const char *device_properties) {
  (void)device_properties;
  rl_sensors *sensors = calloc(1, sizeof *sensors);
  if (sensors) snprintf(sensors->clock_path, sizeof sensors->clock_path, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq");
  return sensors;
}

static double read_clock_mhz(const char *path) {
  double khz;
  RL_CLEANUP(close_file) FILE *file = fopen(path, "re");
  return file && fscanf(file, "%lf", &khz) == 1 ? khz * 1e-3 : NAN;
}

void rl_sensors_read(rl_sensors *sensors, rl_sensor_reading *reading) {
  *reading = (rl_sensor_reading){.sm_clock_mhz = read_clock_mhz(sensors->clock_path),
                                 .memory_clock_mhz = NAN,
                                 .temperature_c = NAN,
                                 .power_w = NAN,
                                 .memory_used_bytes = NAN,
                                 .reason = "the CPU device has no such sensor"};
}

double rl_sensors_read_used_bytes(rl_sensors *sensors) {
  (void)sensors;
  return NAN;
}

void rl_sensors_read_other_processes(rl_sensors *sensors, rl_other_processes *processes) {
  (void)sensors;
  rl_error err;
  *processes = (rl_other_processes){.reason = "every process of the machine shares the CPU"};
  if (rl_processor_times_read("/proc/stat", &processes->processor_times, &err) < 0)
    snprintf(processes->processor_times_reason, sizeof processes->processor_times_reason, "%s", err.message);
}

void rl_sensors_close(rl_sensors *sensors) { free(sensors); }
