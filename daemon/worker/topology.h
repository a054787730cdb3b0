/* Where a GPU sits: the processors and memory of the host nearest to it, its links to other GPUs and to a CPU of its own package.
 * Numbers under ncu's names; what is text there is the part of a name here ("numa__cpu_affinity:0-15"). Through NVML and
 * sysfs. */
#ifndef RL_WORKER_TOPOLOGY_H
#define RL_WORKER_TOPOLOGY_H

#include "model/records.h"

enum { RL_TOPOLOGY_MOST = 64 };

typedef struct rl_topology {                /* does not change while the machine is up */
  rl_kernel_metric items[RL_TOPOLOGY_MOST]; /* without an ordinal */
  size_t count;
} rl_topology;

/* uuid: "GPU-...". Never fails: what can't be read is NAN with its reason. */
void rl_topology_read(const char *uuid, rl_topology *topology);
/* The same with another folder in place of /sys/devices/system/node: for tests. */
void rl_topology_nodes_of(const char *nodes, const unsigned long *processors, size_t words, rl_topology *topology);

#endif
