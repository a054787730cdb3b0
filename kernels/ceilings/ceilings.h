/* The workload "ceilings" measures the highest rates of memory and arithmetic that a device reaches, each by a separate launch.
 * The data is random, because zeros would switch fewer transistors: a device whose power is limited would run faster than with
 * real data. An engine adds a launch for each rate that it can measure (instance.h); the other rates are null with a reason. */
#ifndef RL_CEILINGS_CEILINGS_H
#define RL_CEILINGS_CEILINGS_H

#include "base/fields.h"
#include "workload.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Each entry has the name of a launch, and what its rate counts per second. Bytes are counted as in STREAM: each byte read and
 * each byte written counts once. */
/* clang-format off */
#define RL_CEILINGS(X)                                                                                                  \
  X(dram_read, bytes) X(dram_write, bytes) X(dram_copy, bytes) X(dram_triad, bytes) X(l3_read, bytes) X(l2_read, bytes) \
  X(l2_write, bytes) X(l2_copy, bytes) X(l1_read, bytes) X(shared_read, bytes) X(fp64, operations) X(fp32, operations)  \
  X(fp16, operations) X(bf16, operations) X(tensor_fp64, operations) X(tensor_tf32, operations)                         \
  X(tensor_fp16, operations) X(tensor_bf16, operations)
/* clang-format on */

#define RL_CEILING_ENUM(NAME, UNIT) RL_CEILING_##NAME,
typedef enum rl_ceiling { RL_CEILINGS(RL_CEILING_ENUM) RL_CEILINGS_COUNT } rl_ceiling;
#undef RL_CEILING_ENUM
extern const char *const rl_ceiling_launch_names[]; /* "dram_read", ..., NULL */
extern const char *const rl_ceiling_rate_names[];   /* names of the rates: "dram_read_bytes_per_s", ..., NULL */

typedef struct rl_ceilings_params {
  int64_t samples, seed;
} rl_ceilings_params;
extern const rl_field rl_ceilings_fields[];
extern const rl_workload rl_ceilings;

#ifdef __cplusplus
}
#endif
#endif
