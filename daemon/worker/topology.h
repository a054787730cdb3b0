/* A GPU's topology: the nearest CPUs and NUMA nodes, NVLinks to other GPUs, C2C links to a CPU. Metrics have ncu's
 * names; ncu's text values become an instance in the name ("numa__cpu_affinity:0-15"). Read from NVML and sysfs. */
#ifndef RL_WORKER_TOPOLOGY_H
#define RL_WORKER_TOPOLOGY_H

#include "model/records.h"

enum { RL_TOPOLOGY_MAX_METRICS = 64 };

typedef struct rl_topology {
  rl_kernel_metric items[RL_TOPOLOGY_MAX_METRICS]; /* the metrics, without ordinals */
  size_t count;
} rl_topology;

/* Reads the topology of the GPU with this UUID ("GPU-..."). Never fails: a metric that cannot be read is NAN with a reason. */
void rl_topology_read(const char *uuid, rl_topology *topology);
/* Appends the NUMA nodes that the CPUs belong to (numa__id_cpu). folder: /sys/devices/system/node, or a test's. cpus: a bit set
 * of `words` words. */
void rl_topology_append_cpu_nodes(const char *folder, const unsigned long *cpus, size_t words, rl_topology *topology);

#endif
