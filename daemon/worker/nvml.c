/* The GPU's sensors through NVML, which comes with the driver: opened at run time, with our own declarations of the few functions
 * (documented in NVIDIA's "NVML API Reference Guide"), so that a machine without the driver can run this program. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fields.h"
#include "worker/sensors.h"

typedef void *nvml_device;
typedef int nvml_return; /* 0: success */
enum { CLOCK_SM = 1, CLOCK_MEMORY = 2, TEMPERATURE_GPU = 0 };

typedef struct nvml_memory { /* nvmlMemory_t */
  unsigned long long total, free, used;
} nvml_memory;

struct rl_sensors {
  void *library;
  nvml_device device;
  char reason[RL_REASON_SIZE]; /* why there is no device; "" when there is */
  nvml_return (*shutdown)(void);
  nvml_return (*clock)(nvml_device, int, unsigned *);
  nvml_return (*temperature)(nvml_device, int, unsigned *);
  nvml_return (*power)(nvml_device, unsigned *);
  nvml_return (*memory)(nvml_device, nvml_memory *);
  nvml_return (*throttle)(nvml_device, unsigned long long *);
  const char *(*error_text)(nvml_return);
};

static const struct {
  unsigned long long bit;
  const char *name;
} throttle_names[] = {{0x1, "gpu_idle"}, {0x2, "applications_clocks_setting"}, {0x4, "sw_power_cap"}, {0x8, "hw_slowdown"},
                      {0x10, "sync_boost"}, {0x20, "sw_thermal_slowdown"}, {0x40, "hw_thermal_slowdown"},
                      {0x80, "hw_power_brake_slowdown"}, {0x100, "display_clock_setting"}};

static void uuid_of(const char *facts, char *uuid, size_t size) {
  cJSON *object = facts ? rl_json_parse(facts, strlen(facts), NULL) : NULL;
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "uuid"));
  snprintf(uuid, size, "%s", text ? text : "");
  cJSON_Delete(object);
}

static void refuse(rl_sensors *sensors, const char *what, nvml_return rc) {
  const char *text = rc && sensors->error_text ? sensors->error_text(rc) : NULL;
  snprintf(sensors->reason, sizeof sensors->reason, "%s%s%s", what, text ? ": " : "", text ? text : "");
}

static void find_device(rl_sensors *sensors, const char *uuid) {
  sensors->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!sensors->library) {
    refuse(sensors, "libnvidia-ml.so.1 is not installed", 0);
    return;
  }
  nvml_return (*init)(void);
  nvml_return (*by_uuid)(const char *, nvml_device *);
  const struct {
    const char *name;
    void *function; /* where its address goes */
    bool required;
  } symbols[] = {{"nvmlInit_v2", &init, true},
                 {"nvmlShutdown", &sensors->shutdown, true},
                 {"nvmlDeviceGetHandleByUUID", &by_uuid, true},
                 {"nvmlErrorString", &sensors->error_text, true},
                 {"nvmlDeviceGetClockInfo", &sensors->clock, true},
                 {"nvmlDeviceGetTemperature", &sensors->temperature, true},
                 {"nvmlDeviceGetPowerUsage", &sensors->power, true},
                 {"nvmlDeviceGetMemoryInfo", &sensors->memory, true},
                 {"nvmlDeviceGetCurrentClocksThrottleReasons", &sensors->throttle, false}};
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    void *address = dlsym(sensors->library, symbols[i].name);
    memcpy(symbols[i].function, &address, sizeof address);
    if (!address && symbols[i].required) {
      snprintf(sensors->reason, sizeof sensors->reason, "libnvidia-ml.so.1 lacks %s", symbols[i].name);
      sensors->shutdown = NULL; /* nothing was started */
      return;
    }
  }
  nvml_return rc = init();
  if (rc) {
    sensors->shutdown = NULL;
    refuse(sensors, "NVML does not start", rc);
    return;
  }
  rc = by_uuid(uuid, &sensors->device);
  if (rc) refuse(sensors, "NVML does not know the device", rc);
}

rl_sensors *rl_sensors_open(const char *device_facts) {
  char uuid[96];
  rl_sensors *sensors = calloc(1, sizeof *sensors);
  if (!sensors) return NULL;
  uuid_of(device_facts, uuid, sizeof uuid);
  if (uuid[0])
    find_device(sensors, uuid);
  else
    refuse(sensors, "the device's UUID is not known", 0);
  return sensors;
}

/* value, or NAN with the first reason kept. */
static double kept(rl_sensors *sensors, rl_reading *reading, const char *what, nvml_return rc, double value) {
  if (!rc) return value;
  if (!reading->reason[0]) snprintf(reading->reason, sizeof reading->reason, "NVML, %s: %s", what, sensors->error_text(rc));
  return NAN;
}

void rl_sensors_read(rl_sensors *sensors, rl_reading *reading) {
  *reading = (rl_reading){.sm_clock_mhz = NAN, .memory_clock_mhz = NAN, .temperature_c = NAN, .power_w = NAN,
                          .memory_used_bytes = NAN};
  if (sensors->reason[0]) {
    snprintf(reading->reason, sizeof reading->reason, "%s", sensors->reason);
    return;
  }
  unsigned sm = 0, memory_clock = 0, celsius = 0, milliwatts = 0;
  nvml_memory memory = {0};
  unsigned long long reasons = 0;
  nvml_return rc = sensors->clock(sensors->device, CLOCK_SM, &sm);
  reading->sm_clock_mhz = kept(sensors, reading, "SM clock", rc, sm);
  rc = sensors->clock(sensors->device, CLOCK_MEMORY, &memory_clock);
  reading->memory_clock_mhz = kept(sensors, reading, "memory clock", rc, memory_clock);
  rc = sensors->temperature(sensors->device, TEMPERATURE_GPU, &celsius);
  reading->temperature_c = kept(sensors, reading, "temperature", rc, celsius);
  rc = sensors->power(sensors->device, &milliwatts);
  reading->power_w = kept(sensors, reading, "power", rc, milliwatts * 1e-3);
  rc = sensors->memory(sensors->device, &memory);
  reading->memory_used_bytes = kept(sensors, reading, "memory", rc, (double)memory.used);
  if (!sensors->throttle || sensors->throttle(sensors->device, &reasons)) return;
  size_t used = 0, size = sizeof reading->throttle_reasons;
  for (size_t i = 0; i < sizeof throttle_names / sizeof *throttle_names && used < size; i++)
    if (reasons & throttle_names[i].bit)
      used += (size_t)snprintf(reading->throttle_reasons + used, size - used, "%s%s", used ? "," : "", throttle_names[i].name);
}

void rl_sensors_close(rl_sensors *sensors) {
  if (!sensors) return;
  if (sensors->shutdown) sensors->shutdown();
  if (sensors->library) dlclose(sensors->library);
  free(sensors);
}
