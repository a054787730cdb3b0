/* Implements sensors.h for a GPU: reads its sensors through NVML. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "worker/nvml_library.h"
#include "worker/sensors.h"

enum { CLOCK_SM = 1, CLOCK_MEMORY = 2, TEMPERATURE_GPU = 0 }; /* nvmlClockType_t, nvmlTemperatureSensors_t */

typedef struct nvml_memory { /* nvmlMemory_t */
  unsigned long long total, free, used;
} nvml_memory;

typedef struct nvml_process { /* nvmlProcessInfo_v2_t */
  unsigned pid;
  unsigned long long memory_bytes; /* NVML_VALUE_NOT_AVAILABLE: all bits set */
  unsigned gpu_instance, compute_instance;
} nvml_process;

struct rl_sensors {
  rl_nvml nvml;
  rl_nvml_return (*clock)(rl_nvml_device, int, unsigned *);
  rl_nvml_return (*temperature)(rl_nvml_device, int, unsigned *);
  rl_nvml_return (*power)(rl_nvml_device, unsigned *);
  rl_nvml_return (*memory)(rl_nvml_device, nvml_memory *);
  rl_nvml_return (*throttle)(rl_nvml_device, unsigned long long *);
  rl_nvml_return (*processes)(rl_nvml_device, unsigned *, nvml_process *);
};

static const struct {
  unsigned long long bit;
  const char *name;
} throttle_names[] = {{0x1, "gpu_idle"},
                      {0x2, "applications_clocks_setting"},
                      {0x4, "sw_power_cap"},
                      {0x8, "hw_slowdown"},
                      {0x10, "sync_boost"},
                      {0x20, "sw_thermal_slowdown"},
                      {0x40, "hw_thermal_slowdown"},
                      {0x80, "hw_power_brake_slowdown"},
                      {0x100, "display_clock_setting"}};

/* Copies the GPU's UUID from the device properties; "" when they have none. */
static void find_uuid(const char *properties, char *uuid, size_t size) {
  cJSON *object = properties ? rl_json_parse(properties, strlen(properties), NULL) : NULL;
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "uuid"));
  snprintf(uuid, size, "%s", text ? text : "");
  cJSON_Delete(object);
}

rl_sensors *rl_sensors_open(const char *device_properties) {
  char uuid[96];
  rl_sensors *sensors = calloc(1, sizeof *sensors);
  if (!sensors) return NULL;
  const rl_nvml_symbol symbols[] = {{"nvmlDeviceGetClockInfo", &sensors->clock, true},
                                    {"nvmlDeviceGetTemperature", &sensors->temperature, true},
                                    {"nvmlDeviceGetPowerUsage", &sensors->power, true},
                                    {"nvmlDeviceGetMemoryInfo", &sensors->memory, true},
                                    {"nvmlDeviceGetCurrentClocksThrottleReasons", &sensors->throttle, false},
                                    {"nvmlDeviceGetComputeRunningProcesses_v3", &sensors->processes, false}};
  find_uuid(device_properties, uuid, sizeof uuid);
  rl_nvml_open(&sensors->nvml, uuid, symbols, sizeof symbols / sizeof *symbols);
  return sensors;
}

/* Returns the value, or NAN if rc is an error. reading->reason keeps the text of the first error. */
static double value_or_nan(rl_sensors *sensors, rl_sensor_reading *reading, const char *quantity, rl_nvml_return rc,
                           double value) {
  if (!rc) return value;
  if (!reading->reason[0])
    snprintf(reading->reason, sizeof reading->reason, "NVML, %s: %s", quantity, sensors->nvml.error_text(rc));
  return NAN;
}

static void read_throttle_reasons(rl_sensors *sensors, rl_sensor_reading *reading) {
  unsigned long long reasons = 0;
  if (sensors->throttle) {
    rl_nvml_return rc = sensors->throttle(sensors->nvml.device, &reasons);
    reading->throttle_known = !isnan(value_or_nan(sensors, reading, "throttle reasons", rc, 0));
  } else if (!reading->reason[0]) {
    snprintf(reading->reason, sizeof reading->reason, "libnvidia-ml.so.1 lacks nvmlDeviceGetCurrentClocksThrottleReasons");
  }
  size_t used = 0, size = sizeof reading->throttle_reasons;
  for (size_t i = 0; reading->throttle_known && i < sizeof throttle_names / sizeof *throttle_names && used < size; i++)
    if (reasons & throttle_names[i].bit)
      used += (size_t)snprintf(reading->throttle_reasons + used, size - used, "%s%s", used ? "," : "", throttle_names[i].name);
}

void rl_sensors_read(rl_sensors *sensors, rl_sensor_reading *reading) {
  *reading = (rl_sensor_reading){
      .sm_clock_mhz = NAN, .memory_clock_mhz = NAN, .temperature_c = NAN, .power_w = NAN, .memory_used_bytes = NAN};
  if (sensors->nvml.reason[0]) {
    snprintf(reading->reason, sizeof reading->reason, "%s", sensors->nvml.reason);
    return;
  }
  unsigned sm = 0, memory_clock = 0, celsius = 0, milliwatts = 0;
  nvml_memory memory = {0};
  rl_nvml_return rc = sensors->clock(sensors->nvml.device, CLOCK_SM, &sm);
  reading->sm_clock_mhz = value_or_nan(sensors, reading, "SM clock", rc, sm);
  rc = sensors->clock(sensors->nvml.device, CLOCK_MEMORY, &memory_clock);
  reading->memory_clock_mhz = value_or_nan(sensors, reading, "memory clock", rc, memory_clock);
  rc = sensors->temperature(sensors->nvml.device, TEMPERATURE_GPU, &celsius);
  reading->temperature_c = value_or_nan(sensors, reading, "temperature", rc, celsius);
  rc = sensors->power(sensors->nvml.device, &milliwatts);
  reading->power_w = value_or_nan(sensors, reading, "power", rc, milliwatts * 1e-3);
  rc = sensors->memory(sensors->nvml.device, &memory);
  reading->memory_used_bytes = value_or_nan(sensors, reading, "memory", rc, (double)memory.used);
  read_throttle_reasons(sensors, reading);
}

double rl_sensors_read_used_bytes(rl_sensors *sensors) {
  nvml_memory memory = {0};
  return !sensors->nvml.reason[0] && sensors->memory(sensors->nvml.device, &memory) == 0 ? (double)memory.used : NAN;
}

/* Returns the parent of a process; 0: it has ended, or is hidden. */
static pid_t find_parent(unsigned pid) {
  char path[64], status[512];
  snprintf(path, sizeof path, "/proc/%u/stat", pid);
  FILE *file = fopen(path, "re");
  size_t length = file ? fread(status, 1, sizeof status - 1, file) : 0;
  if (file) fclose(file);
  status[length] = '\0';
  const char *after_name = strrchr(status, ')'); /* the name may contain spaces and parentheses */
  int parent = 0;
  return after_name && sscanf(after_name, ") %*c %d", &parent) == 1 ? parent : 0;
}

static bool is_worker_of_same_daemon(unsigned pid) {
  pid_t parent = find_parent(pid);
  return parent != 0 && parent == getppid();
}

/* Stores the listed processes that are neither this process nor workers of the same daemon. Returns whether this process is
 * listed. */
static bool store_other_processes(const nvml_process *listed, unsigned count, rl_other_processes *processes) {
  bool is_listed = false;
  for (unsigned i = 0; i < count; i++) {
    bool is_self = listed[i].pid == (unsigned)getpid(), is_known = listed[i].memory_bytes != ~0ULL;
    is_listed |= is_self;
    if (is_self || is_worker_of_same_daemon(listed[i].pid)) continue;
    processes->items[processes->count++] = (rl_other_process){listed[i].pid, is_known ? (double)listed[i].memory_bytes : NAN};
  }
  return is_listed;
}

void rl_sensors_read_other_processes(rl_sensors *sensors, rl_other_processes *processes) {
  nvml_process listed[RL_SENSORS_PROCESSES_MAX];
  unsigned count = RL_SENSORS_PROCESSES_MAX;
  *processes = (rl_other_processes){.processor_times_reason = "measured only if the device is the CPU"};
  if (sensors->nvml.reason[0]) {
    snprintf(processes->reason, sizeof processes->reason, "%s", sensors->nvml.reason);
    return;
  }
  rl_nvml_return rc = sensors->processes ? sensors->processes(sensors->nvml.device, &count, listed) : 0;
  if (!sensors->processes)
    snprintf(processes->reason, sizeof processes->reason, "libnvidia-ml.so.1 lacks nvmlDeviceGetComputeRunningProcesses_v3");
  else if (rc) snprintf(processes->reason, sizeof processes->reason, "NVML, processes: %s", sensors->nvml.error_text(rc));
  else if (!store_other_processes(listed, count, processes)) {
    processes->count = 0;
    snprintf(processes->reason, sizeof processes->reason,
             "NVML does not list this worker, because NVML reads another PID namespace, so other processes may be missing too");
  }
}

void rl_sensors_close(rl_sensors *sensors) {
  if (!sensors) return;
  rl_nvml_close(&sensors->nvml);
  free(sensors);
}
