/* Several kernels as one workload: a step whose launches are instances of their families, each on buffers of its own, in order.
 * They share one graph, one timing and one profiling session; the time is of them all, counters are of each. */
#ifndef RL_KERNELS_KERNEL_SEQUENCE_H
#define RL_KERNELS_KERNEL_SEQUENCE_H

#include "kernel/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { RL_SEQUENCE_MEMBERS = 32, RL_SEQUENCE_TEXT = 7168 };

typedef struct rl_sequence_params {
  char kernels[RL_SEQUENCE_TEXT]; /* JSON array of members, each as rl_sequence_member_fields says */
  int64_t samples, seed;          /* of the whole; a member's inputs are from the seed and its place */
} rl_sequence_params;
extern const rl_field rl_sequence_fields[];
extern const rl_field rl_sequence_member_fields[];
extern const rl_workload rl_kernel_sequence;
extern const rl_engine rl_kernel_sequence_cpu, rl_kernel_sequence_cuda; /* sequence_engine.c, for the workers */

/* The parameters of each member; RL_INPUT with a pointer below /kernels. members has room for RL_SEQUENCE_MEMBERS; *count of
 * them. */
int rl_sequence_decode(const cJSON *kernels, int64_t seed, rl_kernel_params *members, size_t *count, rl_error *err);
/* The same from the parameters of a sequence. */
int rl_sequence_members(const rl_sequence_params *params, rl_kernel_params *members, size_t *count, rl_error *err);
/* Whether a CPU has every member's variant; RL_INPUT at /kernels/N/variant when it is a GPU's. */
int rl_sequence_cpu_check(const rl_sequence_params *params, rl_error *err);
/* The array that, once printed, decodes to these members, with every default filled in. NULL when memory is out; the caller
 * deletes it. */
cJSON *rl_sequence_encode(const rl_kernel_params *members, size_t count);

#ifdef __cplusplus
}
#endif
#endif
