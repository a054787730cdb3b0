#include "worker/topology.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/nvml_library.h"

enum {
  WORD_BITS = CHAR_BIT * sizeof(unsigned long),
  PROCESSOR_WORDS = 64,
  NODE_WORDS = 16,
  LINKS_MOST = 64,
  NOT_SUPPORTED = 3, /* nvmlReturn_t */
  AFFINITY_NODE = 0, /* nvmlAffinityScope_t */
  FIELD_NVLINK_COUNT = 91,
  FIELD_NVLINK_SPEED_MBPS = 164,
  FIELD_C2C_COUNT = 170,
  FIELD_C2C_ACTIVE = 171, /* NVML_FI_DEV_* */
  PEER_ACCESS = 0,
  SYSTEM_ACCESS = 1,
  PEER_ATOMIC = 2,
  SYSTEM_ATOMIC = 3,
  CAPABILITIES, /* nvmlNvLinkCapability_t */
  REMOTE_GPU = 0,
  REMOTE_SWITCH = 2 /* nvmlIntNvLinkDeviceType_t */
};
static const char nodes_folder[] = "/sys/devices/system/node";

typedef struct nvml_field { /* nvmlFieldValue_t */
  unsigned field, scope;
  long long timestamp, latency_us;
  unsigned type;
  rl_nvml_return result;
  union {
    double real;
    unsigned number;
    unsigned long long large;
  } value;
} nvml_field;

typedef struct nvml_pci { /* nvmlPciInfo_t */
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char text[32];
} nvml_pci;

typedef struct functions {
  rl_nvml nvml;
  rl_nvml_return (*name)(rl_nvml_device, char *, unsigned);
  rl_nvml_return (*processors)(rl_nvml_device, unsigned, unsigned long *);
  rl_nvml_return (*memory)(rl_nvml_device, unsigned, unsigned long *, int);
  rl_nvml_return (*fields)(rl_nvml_device, int, nvml_field *);
  rl_nvml_return (*link_active)(rl_nvml_device, unsigned, unsigned *);
  rl_nvml_return (*link_can)(rl_nvml_device, unsigned, int, unsigned *);
  rl_nvml_return (*link_remote_type)(rl_nvml_device, unsigned, int *);
  rl_nvml_return (*link_remote)(rl_nvml_device, unsigned, nvml_pci *);
} functions;

static void put(rl_topology *topology, const char *name, double value, const char *reason) {
  if (topology->count == RL_TOPOLOGY_MOST) return;
  rl_kernel_metric *item = &topology->items[topology->count++];
  *item = (rl_kernel_metric){.value = value};
  snprintf(item->metric, sizeof item->metric, "%s", name);
  if (isnan(value)) snprintf(item->reason, sizeof item->reason, "%s", reason);
}

static void put_part(rl_topology *topology, const char *name, const char *part) {
  char whole[sizeof topology->items->metric];
  snprintf(whole, sizeof whole, "%s:%s", name, part);
  put(topology, whole, 1, NULL);
}

/* --- sets of small numbers --------------------------------------------------------------------------------------------- */

static bool has(const unsigned long *set, size_t number) { return set[number / WORD_BITS] >> number % WORD_BITS & 1; }

/* "0-15,32-47" */
static void print_set(const unsigned long *set, size_t words, char *text, size_t size) {
  size_t used = 0, end = words * WORD_BITS;
  text[0] = '\0';
  for (size_t first = 0; first < end && used < size; first++) {
    size_t last = first;
    if (!has(set, first)) continue;
    while (last + 1 < end && has(set, last + 1)) last++;
    used += (size_t)snprintf(text + used, size - used, first == last ? "%s%zu" : "%s%zu-%zu", used > 0 ? "," : "", first, last);
    first = last;
  }
}

/* Whether a list as print_set writes them, of a file of sysfs, names a member of set. */
static bool overlaps(const char *list, const unsigned long *set, size_t words) {
  while (isdigit((unsigned char)*list)) {
    char *end = NULL;
    unsigned long first = strtoul(list, &end, 10), last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
    for (unsigned long number = first; number <= last && number < words * WORD_BITS; number++)
      if (has(set, number)) return true;
    list = *end == ',' ? end + 1 : end;
  }
  return false;
}

static void put_numbers(rl_topology *topology, const char *name, const unsigned long *set, size_t words) {
  double count = 0;
  put(topology, name, 0, NULL);
  rl_kernel_metric *whole = &topology->items[topology->count - 1];
  for (size_t number = 0; number < words * WORD_BITS; number++) {
    char part[24];
    if (!has(set, number)) continue;
    snprintf(part, sizeof part, "%zu", number);
    put_part(topology, name, part);
    count++;
  }
  whole->value = count;
}

/* --- the host ---------------------------------------------------------------------------------------------------------- */

void rl_topology_nodes_of(const char *nodes, const unsigned long *processors, size_t words, rl_topology *topology) {
  unsigned long set[NODE_WORDS] = {0};
  bool any = false;
  for (size_t node = 0; node < NODE_WORDS * WORD_BITS; node++) {
    char path[256], list[4096] = "";
    snprintf(path, sizeof path, "%s/node%zu/cpulist", nodes, node);
    FILE *file = fopen(path, "re");
    if (file == NULL) continue;
    if (fgets(list, sizeof list, file) != NULL && overlaps(list, processors, words))
      set[node / WORD_BITS] |= 1ul << node % WORD_BITS;
    fclose(file);
    any = true;
  }
  if (any) put_numbers(topology, "numa__id_cpu", set, NODE_WORDS);
  else put(topology, "numa__id_cpu", NAN, "this host does not say which processors its NUMA nodes have");
}

static void read_host(functions *api, rl_topology *topology) {
  unsigned long processors[PROCESSOR_WORDS] = {0}, nodes[NODE_WORDS] = {0};
  char text[80];
  rl_nvml_return rc = api->processors(api->nvml.device, PROCESSOR_WORDS, processors);
  put(topology, "numa__cpu_affinity", rc ? NAN : 1, api->nvml.error_text(rc));
  if (rc) {
    put(topology, "numa__id_cpu", NAN, api->nvml.error_text(rc));
  } else {
    print_set(processors, PROCESSOR_WORDS, text, sizeof text);
    put_part(topology, "numa__cpu_affinity", text);
    rl_topology_nodes_of(nodes_folder, processors, PROCESSOR_WORDS, topology);
  }
  rc = api->memory(api->nvml.device, NODE_WORDS, nodes, AFFINITY_NODE);
  if (rc) put(topology, "numa__id_memory", NAN, api->nvml.error_text(rc));
  else put_numbers(topology, "numa__id_memory", nodes, NODE_WORDS);
  rc = api->name(api->nvml.device, text, sizeof text);
  put(topology, "numa__dev_display_name_all", rc ? NAN : 1, api->nvml.error_text(rc));
  if (!rc) put_part(topology, "numa__dev_display_name_all", text);
}

/* --- links ------------------------------------------------------------------------------------------------------------- */

/* One of NVML's field values; NAN when rc says that there is none. */
static double field(functions *api, unsigned id, unsigned scope, rl_nvml_return *rc) {
  nvml_field asked = {.field = id, .scope = scope};
  *rc = api->fields(api->nvml.device, 1, &asked);
  if (!*rc) *rc = asked.result;
  return *rc ? NAN : asked.value.number;
}

typedef struct links { /* of one device */
  unsigned count, active, logical;
  double mask, bytes_per_s;
  bool direct, through_switch, can[CAPABILITIES];
  nvml_pci remotes[LINKS_MOST];
} links;

static void add_remote(functions *api, unsigned link, links *found) {
  nvml_pci remote = {0};
  int type = -1;
  if (!api->link_remote_type(api->nvml.device, link, &type)) {
    found->direct |= type == REMOTE_GPU;
    found->through_switch |= type == REMOTE_SWITCH;
  }
  if (api->link_remote(api->nvml.device, link, &remote)) return;
  for (unsigned i = 0; i < found->logical; i++)
    if (strncmp(found->remotes[i].text, remote.text, sizeof remote.text) == 0) return;
  found->remotes[found->logical++] = remote;
}

static void add_link(functions *api, unsigned link, links *found) {
  rl_nvml_return rc;
  unsigned active = 0, can = 0;
  if (api->link_active(api->nvml.device, link, &active) || !active) return;
  found->active++;
  found->mask += ldexp(1, (int)link);
  found->bytes_per_s += field(api, FIELD_NVLINK_SPEED_MBPS, link, &rc) * 1e6;
  for (int c = 0; c < CAPABILITIES; c++) found->can[c] |= !api->link_can(api->nvml.device, link, c, &can) && can;
  add_remote(api, link, found);
}

typedef struct fact {
  const char *name;
  double value;
} fact;

/* why_not: of them all; NULL: each has its value. */
static void put_facts(rl_topology *topology, const fact *facts, size_t count, const char *why_not) {
  for (size_t i = 0; i < count; i++)
    if (why_not != NULL) put(topology, facts[i].name, NAN, why_not);
    else put(topology, facts[i].name, facts[i].value, "NVML does not tell it");
}

/* Where NVML knows no links of a device, it has none; and of links that are not there nothing can be said. */
static void read_nvlink(functions *api, rl_topology *topology) {
  rl_nvml_return rc;
  links found = {0};
  double count = field(api, FIELD_NVLINK_COUNT, 0, &rc);
  const char *reason = api->nvml.error_text(rc), *failed = rc && rc != NOT_SUPPORTED ? reason : NULL;
  for (unsigned link = 0; link < LINKS_MOST && link < count; link++) add_link(api, link, &found);
  const char *undescribed = failed == NULL && found.active == 0 ? "no NVLink of this device is connected" : failed;
  const fact counts[] = {
      {"nvlink__count_physical", found.active}, {"nvlink__count_logical", found.logical}, {"nvlink__enabled_mask", found.mask}};
  const fact of_links[] = {{"nvlink__bandwidth", found.bytes_per_s},
                           {"nvlink__is_direct_link", found.direct},
                           {"nvlink__is_nvswitch_connected", found.through_switch},
                           {"nvlink__peer_access", found.can[PEER_ACCESS]},
                           {"nvlink__peer_atomic", found.can[PEER_ATOMIC]},
                           {"nvlink__system_access", found.can[SYSTEM_ACCESS]},
                           {"nvlink__system_atomic", found.can[SYSTEM_ATOMIC]}};
  put(topology, "nvlink__max_count", count, reason);
  put_facts(topology, counts, sizeof counts / sizeof *counts, failed);
  put_facts(topology, of_links, sizeof of_links / sizeof *of_links, undescribed);
}

static void read_c2c(functions *api, rl_topology *topology) {
  rl_nvml_return rc, ignored;
  double count = field(api, FIELD_C2C_COUNT, 0, &rc), mask = 0;
  bool known = !rc || rc == NOT_SUPPORTED;
  for (unsigned link = 0; link < LINKS_MOST && link < count; link++)
    if (field(api, FIELD_C2C_ACTIVE, link, &ignored) == 1) mask += ldexp(1, (int)link);
  put(topology, "c2clink__present", known ? count > 0 : NAN, api->nvml.error_text(rc));
  put(topology, "c2clink__enabled_mask", known ? mask : NAN, api->nvml.error_text(rc));
}

/* ---------------------------------------------------------------------------------------------------------------- */

static void put_nothing(rl_topology *topology, const char *reason) {
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
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) put(topology, names[i], NAN, reason);
}

void rl_topology_read(const char *uuid, rl_topology *topology) {
  functions api;
  const rl_nvml_symbol symbols[] = {{"nvmlDeviceGetName", &api.name, true},
                                    {"nvmlDeviceGetCpuAffinity", &api.processors, true},
                                    {"nvmlDeviceGetMemoryAffinity", &api.memory, true},
                                    {"nvmlDeviceGetFieldValues", &api.fields, true},
                                    {"nvmlDeviceGetNvLinkState", &api.link_active, true},
                                    {"nvmlDeviceGetNvLinkCapability", &api.link_can, true},
                                    {"nvmlDeviceGetNvLinkRemoteDeviceType", &api.link_remote_type, true},
                                    {"nvmlDeviceGetNvLinkRemotePciInfo_v2", &api.link_remote, true}};
  topology->count = 0;
  rl_nvml_open(&api.nvml, uuid, symbols, sizeof symbols / sizeof *symbols);
  if (api.nvml.reason[0]) {
    put_nothing(topology, api.nvml.reason);
  } else {
    read_host(&api, topology);
    read_nvlink(&api, topology);
    read_c2c(&api, topology);
  }
  rl_nvml_close(&api.nvml);
}
