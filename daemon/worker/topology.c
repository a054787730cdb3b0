/* Queries NVML for affinities, NVLinks and C2C links, and reads the CPUs of NUMA nodes from sysfs. Without NVML every metric has
 * no value and a reason. */
#include "worker/topology.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/nvml_library.h"

enum { WORD_BITS = CHAR_BIT * sizeof(unsigned long), CPU_WORDS = 64, NODE_WORDS = 16, MAX_LINKS = 64 };
static const char nodes_folder[] = "/sys/devices/system/node";

/* --- copied from nvml.h, so that the build does not need it ------------------------------------------------------------ */

enum {
  ERROR_NOT_SUPPORTED = 3, /* nvmlReturn_t */
  AFFINITY_SCOPE_NODE = 0, /* nvmlAffinityScope_t */
  FIELD_NVLINK_COUNT = 91,
  FIELD_NVLINK_SPEED_MBPS = 164,
  FIELD_C2C_COUNT = 170,
  FIELD_C2C_LINK_ACTIVE = 171, /* NVML_FI_DEV_* */
  CAPABILITY_PEER_ACCESS = 0,
  CAPABILITY_SYSTEM_ACCESS = 1,
  CAPABILITY_PEER_ATOMIC = 2,
  CAPABILITY_SYSTEM_ATOMIC = 3,
  CAPABILITY_COUNT, /* CAPABILITY_PEER_ACCESS to CAPABILITY_SYSTEM_ATOMIC: nvmlNvLinkCapability_t */
  REMOTE_DEVICE_GPU = 0,
  REMOTE_DEVICE_SWITCH = 2 /* nvmlIntNvLinkDeviceType_t */
};

typedef struct nvml_field {    /* nvmlFieldValue_t */
  unsigned field_id, scope_id; /* scope_id: the link, for fields of links */
  long long timestamp, latency_us;
  unsigned value_type;
  rl_nvml_return status;
  union {
    double as_double;
    unsigned as_unsigned;
    unsigned long long as_unsigned_long_long;
  } value;
} nvml_field;

typedef struct nvml_pci { /* nvmlPciInfo_t */
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32]; /* "00000000:1B:00.0" */
} nvml_pci;

typedef struct nvml_functions {
  rl_nvml nvml;
  rl_nvml_return (*get_name)(rl_nvml_device, char *, unsigned);
  rl_nvml_return (*get_cpu_affinity)(rl_nvml_device, unsigned, unsigned long *);
  rl_nvml_return (*get_memory_affinity)(rl_nvml_device, unsigned, unsigned long *, int);
  rl_nvml_return (*get_field_values)(rl_nvml_device, int, nvml_field *);
  rl_nvml_return (*get_link_active)(rl_nvml_device, unsigned, unsigned *);
  rl_nvml_return (*get_link_capability)(rl_nvml_device, unsigned, int, unsigned *);
  rl_nvml_return (*get_link_remote_type)(rl_nvml_device, unsigned, int *);
  rl_nvml_return (*get_link_remote_pci)(rl_nvml_device, unsigned, nvml_pci *);
} nvml_functions;

/* --- metrics ----------------------------------------------------------------------------------------------------------- */

static void append_metric(rl_topology *topology, const char *name, double value, const char *reason) {
  if (topology->count == RL_TOPOLOGY_MAX_METRICS) return;
  rl_kernel_metric *item = &topology->items[topology->count++];
  *item = (rl_kernel_metric){.value = value};
  snprintf(item->metric, sizeof item->metric, "%s", name);
  if (isnan(value)) snprintf(item->reason, sizeof item->reason, "%s", reason);
}

/* Appends an instance of the metric, named "NAME:INSTANCE", with the value 1. */
static void append_instance(rl_topology *topology, const char *name, const char *instance) {
  char full_name[sizeof topology->items->metric];
  snprintf(full_name, sizeof full_name, "%s:%s", name, instance);
  append_metric(topology, full_name, 1, NULL);
}

static bool is_member(const unsigned long *set, size_t number) { return set[number / WORD_BITS] >> number % WORD_BITS & 1; }

/* Prints a bit set as a list of ranges: "0-15,32-47". */
static void print_ranges(const unsigned long *set, size_t words, char *text, size_t size) {
  size_t used = 0, end = words * WORD_BITS;
  text[0] = '\0';
  for (size_t first = 0; first < end && used < size; first++) {
    size_t last = first;
    if (!is_member(set, first)) continue;
    while (last + 1 < end && is_member(set, last + 1)) last++;
    used += (size_t)snprintf(text + used, size - used, first == last ? "%s%zu" : "%s%zu-%zu", used > 0 ? "," : "", first, last);
    first = last;
  }
}

/* Returns true when a list of ranges from sysfs contains a member of the set. */
static bool overlaps(const char *list, const unsigned long *set, size_t words) {
  while (isdigit((unsigned char)*list)) {
    char *end = NULL;
    unsigned long first = strtoul(list, &end, 10), last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
    for (unsigned long number = first; number <= last && number < words * WORD_BITS; number++)
      if (is_member(set, number)) return true;
    list = *end == ',' ? end + 1 : end;
  }
  return false;
}

/* Appends the number of members of the set, and an instance for each. */
static void append_set(rl_topology *topology, const char *name, const unsigned long *set, size_t words) {
  double count = 0;
  append_metric(topology, name, 0, NULL);
  rl_kernel_metric *total = &topology->items[topology->count - 1];
  for (size_t number = 0; number < words * WORD_BITS; number++) {
    char instance[24];
    if (!is_member(set, number)) continue;
    snprintf(instance, sizeof instance, "%zu", number);
    append_instance(topology, name, instance);
    count++;
  }
  total->value = count;
}

void rl_topology_append_cpu_nodes(const char *folder, const unsigned long *cpus, size_t words, rl_topology *topology) {
  unsigned long set[NODE_WORDS] = {0};
  bool has_nodes = false;
  for (size_t node = 0; node < NODE_WORDS * WORD_BITS; node++) {
    char path[256], list[4096] = "";
    snprintf(path, sizeof path, "%s/node%zu/cpulist", folder, node);
    FILE *file = fopen(path, "re");
    if (file == NULL) continue;
    if (fgets(list, sizeof list, file) != NULL && overlaps(list, cpus, words)) set[node / WORD_BITS] |= 1ul << node % WORD_BITS;
    fclose(file);
    has_nodes = true;
  }
  if (has_nodes) append_set(topology, "numa__id_cpu", set, NODE_WORDS);
  else append_metric(topology, "numa__id_cpu", NAN, "this host does not report the CPUs of its NUMA nodes");
}

static void read_host(nvml_functions *api, rl_topology *topology) {
  unsigned long cpus[CPU_WORDS] = {0}, nodes[NODE_WORDS] = {0};
  char text[80];
  rl_nvml_return rc = api->get_cpu_affinity(api->nvml.device, CPU_WORDS, cpus);
  append_metric(topology, "numa__cpu_affinity", rc ? NAN : 1, api->nvml.error_text(rc));
  if (rc) {
    append_metric(topology, "numa__id_cpu", NAN, api->nvml.error_text(rc));
  } else {
    print_ranges(cpus, CPU_WORDS, text, sizeof text);
    append_instance(topology, "numa__cpu_affinity", text);
    rl_topology_append_cpu_nodes(nodes_folder, cpus, CPU_WORDS, topology);
  }
  rc = api->get_memory_affinity(api->nvml.device, NODE_WORDS, nodes, AFFINITY_SCOPE_NODE);
  if (rc) append_metric(topology, "numa__id_memory", NAN, api->nvml.error_text(rc));
  else append_set(topology, "numa__id_memory", nodes, NODE_WORDS);
  rc = api->get_name(api->nvml.device, text, sizeof text);
  append_metric(topology, "numa__dev_display_name_all", rc ? NAN : 1, api->nvml.error_text(rc));
  if (!rc) append_instance(topology, "numa__dev_display_name_all", text);
}

/* Reads an unsigned field; NAN when *rc is not 0. */
static double read_field(nvml_functions *api, unsigned id, unsigned scope_id, rl_nvml_return *rc) {
  nvml_field request = {.field_id = id, .scope_id = scope_id};
  *rc = api->get_field_values(api->nvml.device, 1, &request);
  if (!*rc) *rc = request.status;
  return *rc ? NAN : request.value.as_unsigned;
}

typedef struct nvlinks {                /* the NVLinks of one device */
  unsigned active_count, logical_count; /* logical_count: number of different remote devices */
  double enabled_mask, bytes_per_s;
  bool to_gpu, to_switch,
      capabilities[CAPABILITY_COUNT]; /* whether a link leads to a GPU or to a switch; capabilities that a link has */
  nvml_pci remotes[MAX_LINKS];
} nvlinks;

static void add_remote_device(nvml_functions *api, unsigned link, nvlinks *found) {
  nvml_pci remote = {0};
  int type = -1;
  if (!api->get_link_remote_type(api->nvml.device, link, &type)) {
    found->to_gpu |= type == REMOTE_DEVICE_GPU;
    found->to_switch |= type == REMOTE_DEVICE_SWITCH;
  }
  if (api->get_link_remote_pci(api->nvml.device, link, &remote)) return;
  for (unsigned i = 0; i < found->logical_count; i++)
    if (strncmp(found->remotes[i].bus_id, remote.bus_id, sizeof remote.bus_id) == 0) return;
  found->remotes[found->logical_count++] = remote;
}

static void add_link(nvml_functions *api, unsigned link, nvlinks *found) {
  rl_nvml_return rc;
  unsigned active = 0, capable = 0;
  if (api->get_link_active(api->nvml.device, link, &active) || !active) return;
  found->active_count++;
  found->enabled_mask += ldexp(1, (int)link);
  found->bytes_per_s += read_field(api, FIELD_NVLINK_SPEED_MBPS, link, &rc) * 1e6;
  for (int c = 0; c < CAPABILITY_COUNT; c++)
    found->capabilities[c] |= !api->get_link_capability(api->nvml.device, link, c, &capable) && capable;
  add_remote_device(api, link, found);
}

typedef struct metric {
  const char *name;
  double value;
} metric;

/* Appends the metrics. reason: why the metrics have no values; NULL: they have values. */
static void append_metrics(rl_topology *topology, const metric *metrics, size_t count, const char *reason) {
  for (size_t i = 0; i < count; i++)
    if (reason != NULL) append_metric(topology, metrics[i].name, NAN, reason);
    else append_metric(topology, metrics[i].name, metrics[i].value, "NVML does not report it");
}

/* Appends the NVLink metrics. A device for which NVML returns "not supported" has 0 links. Without an active link, the properties
 * of links have no value. */
static void read_nvlink(nvml_functions *api, rl_topology *topology) {
  rl_nvml_return rc;
  nvlinks found = {0};
  double count = read_field(api, FIELD_NVLINK_COUNT, 0, &rc);
  const char *reason = api->nvml.error_text(rc), *failure_reason = rc && rc != ERROR_NOT_SUPPORTED ? reason : NULL;
  for (unsigned link = 0; link < MAX_LINKS && link < count; link++) add_link(api, link, &found);
  const char *no_properties =
      failure_reason == NULL && found.active_count == 0 ? "no NVLink of this device is connected" : failure_reason;
  const metric counts[] = {{"nvlink__count_physical", found.active_count},
                           {"nvlink__count_logical", found.logical_count},
                           {"nvlink__enabled_mask", found.enabled_mask}};
  const metric properties[] = {{"nvlink__bandwidth", found.bytes_per_s},
                               {"nvlink__is_direct_link", found.to_gpu},
                               {"nvlink__is_nvswitch_connected", found.to_switch},
                               {"nvlink__peer_access", found.capabilities[CAPABILITY_PEER_ACCESS]},
                               {"nvlink__peer_atomic", found.capabilities[CAPABILITY_PEER_ATOMIC]},
                               {"nvlink__system_access", found.capabilities[CAPABILITY_SYSTEM_ACCESS]},
                               {"nvlink__system_atomic", found.capabilities[CAPABILITY_SYSTEM_ATOMIC]}};
  append_metric(topology, "nvlink__max_count", count, reason);
  append_metrics(topology, counts, sizeof counts / sizeof *counts, failure_reason);
  append_metrics(topology, properties, sizeof properties / sizeof *properties, no_properties);
}

static void read_c2c(nvml_functions *api, rl_topology *topology) {
  rl_nvml_return rc, ignored;
  double count = read_field(api, FIELD_C2C_COUNT, 0, &rc), mask = 0;
  bool is_known = !rc || rc == ERROR_NOT_SUPPORTED;
  for (unsigned link = 0; link < MAX_LINKS && link < count; link++)
    if (read_field(api, FIELD_C2C_LINK_ACTIVE, link, &ignored) == 1) mask += ldexp(1, (int)link);
  append_metric(topology, "c2clink__present", is_known ? count > 0 : NAN, api->nvml.error_text(rc));
  append_metric(topology, "c2clink__enabled_mask", is_known ? mask : NAN, api->nvml.error_text(rc));
}

/* Appends every metric with the value NAN and this reason. */
static void append_unavailable(rl_topology *topology, const char *reason) {
  static const char *const names[] = {"numa__cpu_affinity",
                                      "numa__id_cpu",
                                      "numa__id_memory",
                                      "numa__dev_display_name_all",
                                      "nvlink__max_count",
                                      "nvlink__count_physical",
                                      "nvlink__count_logical",
                                      "nvlink__enabled_mask",
                                      "nvlink__bandwidth",
                                      "nvlink__is_direct_link",
                                      "nvlink__is_nvswitch_connected",
                                      "nvlink__peer_access",
                                      "nvlink__peer_atomic",
                                      "nvlink__system_access",
                                      "nvlink__system_atomic",
                                      "c2clink__present",
                                      "c2clink__enabled_mask"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) append_metric(topology, names[i], NAN, reason);
}

void rl_topology_read(const char *uuid, rl_topology *topology) {
  nvml_functions api;
  const rl_nvml_symbol symbols[] = {{"nvmlDeviceGetName", &api.get_name, true},
                                    {"nvmlDeviceGetCpuAffinity", &api.get_cpu_affinity, true},
                                    {"nvmlDeviceGetMemoryAffinity", &api.get_memory_affinity, true},
                                    {"nvmlDeviceGetFieldValues", &api.get_field_values, true},
                                    {"nvmlDeviceGetNvLinkState", &api.get_link_active, true},
                                    {"nvmlDeviceGetNvLinkCapability", &api.get_link_capability, true},
                                    {"nvmlDeviceGetNvLinkRemoteDeviceType", &api.get_link_remote_type, true},
                                    {"nvmlDeviceGetNvLinkRemotePciInfo_v2", &api.get_link_remote_pci, true}};
  topology->count = 0;
  rl_nvml_open(&api.nvml, uuid, symbols, sizeof symbols / sizeof *symbols);
  if (api.nvml.reason[0]) {
    append_unavailable(topology, api.nvml.reason);
  } else {
    read_host(&api, topology);
    read_nvlink(&api, topology);
    read_c2c(&api, topology);
  }
  rl_nvml_close(&api.nvml);
}
