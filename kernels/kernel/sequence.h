/* Several kernels as one workload. Its step launches the members in order, each on its own buffers. One graph, one timing and
 * one profiling session cover all members. The measured times are those of the whole step; the counters are those of each
 * member. */
#ifndef RL_KERNELS_KERNEL_SEQUENCE_H
#define RL_KERNELS_KERNEL_SEQUENCE_H

#include "kernel/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { RL_KERNEL_SEQUENCE_MAX_MEMBERS = 32, RL_KERNEL_SEQUENCE_TEXT_SIZE = 7168 };

typedef struct rl_kernel_sequence_params {
  char kernels[RL_KERNEL_SEQUENCE_TEXT_SIZE]; /* JSON array of members with the fields rl_kernel_sequence_member_fields */
  int64_t samples;                            /* number of timed samples of the whole step */
  int64_t pause_ms;                           /* idle time before each sample */
  int64_t seed;                               /* a member's seed is derived from this and its index */
} rl_kernel_sequence_params;
extern const rl_field rl_kernel_sequence_fields[];
extern const rl_field rl_kernel_sequence_member_fields[];
extern const rl_workload rl_kernel_sequence;
extern const rl_engine rl_kernel_sequence_cpu, rl_kernel_sequence_cuda; /* sequence_engine.c, linked by the workers alone */

/* Decodes the parameters of the members into members[RL_KERNEL_SEQUENCE_MAX_MEMBERS] and their number into *count. Returns -1
 * with RL_INPUT and a pointer at or below /kernels. */
int rl_kernel_sequence_decode(const cJSON *kernels, int64_t seed, rl_kernel_params *members, size_t *count, rl_error *err);
/* Decodes params->kernels with params->seed in the same way. */
int rl_kernel_sequence_decode_params(const rl_kernel_sequence_params *params, rl_kernel_params *members, size_t *count,
                                     rl_error *err);
/* Returns -1 with RL_INPUT at or below /kernels/N when devices of this kind do not support a member. */
int rl_kernel_sequence_check(const rl_kernel_sequence_params *params, rl_device_kind kind, rl_error *err);
/* Returns a JSON array that decodes to these members, defaults filled in. The caller deletes it. Returns NULL when out of
 * memory. */
cJSON *rl_kernel_sequence_encode(const rl_kernel_params *members, size_t count);

#ifdef __cplusplus
}
#endif
#endif
