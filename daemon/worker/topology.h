/* Reads a GPU's topology from NVML and sysfs: the nearest CPUs and NUMA nodes, NVLinks to other GPUs, and C2C links to a CPU. The
 * metrics have Nsight Compute's names. A metric whose value in Nsight Compute is a text becomes a metric instance whose name
 * contains the text and whose value is 1: "numa__cpu_affinity:0-15". */
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
/* Appends the NUMA nodes to which the CPUs belong (numa__id_cpu). folder: /sys/devices/system/node, or another folder in a test.
 * cpus: a bit set of `words` words. */
void rl_topology_append_cpu_nodes(const char *folder, const unsigned long *cpus, size_t words, rl_topology *topology);

#endif
