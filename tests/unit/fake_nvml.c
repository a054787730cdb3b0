/* Defines the NVML functions that the program calls. They describe the device in fake_nvml. */
#include "fake_nvml.h"

#include <stdio.h>
#include <string.h>

enum { FIELD_NVLINK_COUNT = 91, FIELD_NVLINK_SPEED_MBPS = 164, SPEED_MBPS = 26562 };

struct fake_nvml fake_nvml;

typedef struct field_value { /* nvmlFieldValue_t */
  unsigned field, scope;
  long long timestamp, latency_us;
  unsigned type;
  int result;
  union {
    double real;
    unsigned number;
  } value;
} field_value;

typedef struct pci_info { /* nvmlPciInfo_t */
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char text[32];
} pci_info;

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByUUID(const char *, void **);
const char *nvmlErrorString(int);
int nvmlDeviceGetName(void *, char *, unsigned);
int nvmlDeviceGetCpuAffinity(void *, unsigned, unsigned long *);
int nvmlDeviceGetMemoryAffinity(void *, unsigned, unsigned long *, int);
int nvmlDeviceGetFieldValues(void *, int, field_value *);
int nvmlDeviceGetNvLinkState(void *, unsigned, unsigned *);
int nvmlDeviceGetNvLinkCapability(void *, unsigned, int, unsigned *);
int nvmlDeviceGetNvLinkRemoteDeviceType(void *, unsigned, int *);
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *, unsigned, pci_info *);
int nvmlDeviceGetClockInfo(void *, int, unsigned *);
int nvmlDeviceGetTemperature(void *, int, unsigned *);
int nvmlDeviceGetPowerUsage(void *, unsigned *);
int nvmlDeviceGetMemoryInfo(void *, unsigned long long[3]);
int nvmlDeviceGetCurrentClocksThrottleReasons(void *, unsigned long long *);
int nvmlDeviceGetComputeRunningProcesses_v3(void *, unsigned *, fake_process *);

int nvmlInit_v2(void) { return FAKE_NVML_SUCCESS; }
int nvmlShutdown(void) { return FAKE_NVML_SUCCESS; }

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
  (void)uuid;
  *device = &fake_nvml;
  return FAKE_NVML_SUCCESS;
}

const char *nvmlErrorString(int result) {
  return result == FAKE_NVML_NOT_SUPPORTED ? "Not Supported" : result == FAKE_NVML_SUCCESS ? "Success" : "Unknown Error";
}

int nvmlDeviceGetName(void *device, char *name, unsigned size) {
  (void)device;
  snprintf(name, size, "a device");
  return FAKE_NVML_SUCCESS;
}

int nvmlDeviceGetCpuAffinity(void *device, unsigned words, unsigned long *set) {
  (void)device;
  memset(set, 0, words * sizeof *set);
  set[0] = 1;
  return FAKE_NVML_SUCCESS;
}

int nvmlDeviceGetMemoryAffinity(void *device, unsigned words, unsigned long *set, int scope) {
  (void)scope;
  return nvmlDeviceGetCpuAffinity(device, words, set);
}

int nvmlDeviceGetFieldValues(void *device, int count, field_value *values) {
  (void)device;
  for (int i = 0; i < count; i++) {
    bool is_link_count = values[i].field == FIELD_NVLINK_COUNT, is_speed = values[i].field == FIELD_NVLINK_SPEED_MBPS;
    values[i].result = is_link_count ? fake_nvml.count_result : is_speed ? FAKE_NVML_SUCCESS : FAKE_NVML_NOT_SUPPORTED;
    values[i].value.number = is_link_count ? fake_nvml.link_count : SPEED_MBPS;
  }
  return FAKE_NVML_SUCCESS;
}

int nvmlDeviceGetNvLinkState(void *device, unsigned link, unsigned *active) {
  (void)device;
  if (link >= FAKE_MAX_LINKS) return FAKE_NVML_INVALID_ARGUMENT;
  *active = fake_nvml.links[link].active;
  return FAKE_NVML_SUCCESS;
}

/* Only capability 0, peer access, is supported. */
int nvmlDeviceGetNvLinkCapability(void *device, unsigned link, int capability, unsigned *capable) {
  (void)device;
  (void)link;
  *capable = capability == 0;
  return FAKE_NVML_SUCCESS;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned link, int *type) {
  (void)device;
  *type = fake_nvml.links[link].remote_type;
  return FAKE_NVML_SUCCESS;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned link, pci_info *remote) {
  (void)device;
  snprintf(remote->text, sizeof remote->text, "%s", fake_nvml.links[link].remote);
  return FAKE_NVML_SUCCESS;
}

int nvmlDeviceGetClockInfo(void *device, int clock, unsigned *mhz) {
  (void)device, (void)clock;
  *mhz = 1980;
  return FAKE_NVML_SUCCESS;
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius) {
  (void)device, (void)sensor;
  *celsius = 40;
  return FAKE_NVML_SUCCESS;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) {
  (void)device;
  *milliwatts = 100000;
  return FAKE_NVML_SUCCESS;
}

int nvmlDeviceGetMemoryInfo(void *device, unsigned long long total_free_used[3]) {
  (void)device;
  memset(total_free_used, 0, 3 * sizeof *total_free_used);
  return FAKE_NVML_SUCCESS;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) {
  (void)device;
  *reasons = fake_nvml.throttle_reasons;
  return fake_nvml.throttle_result;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, fake_process *processes) {
  (void)device;
  if (fake_nvml.processes_result != FAKE_NVML_SUCCESS) return fake_nvml.processes_result;
  *count = fake_nvml.process_count;
  memcpy(processes, fake_nvml.processes, fake_nvml.process_count * sizeof *processes);
  return FAKE_NVML_SUCCESS;
}
