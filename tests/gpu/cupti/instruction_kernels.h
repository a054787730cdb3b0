/* Kernels with known instruction counts, bank conflicts, stall reasons and phases, for tests of instruction_profiler.h. */
#ifndef RL_TESTS_CUPTI_INSTRUCTION_KERNELS_H
#define RL_TESTS_CUPTI_INSTRUCTION_KERNELS_H

#include "workload.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  BLOCKS = 132,
  THREADS_PER_BLOCK = 256,
  WARPS_PER_LAUNCH = BLOCKS * THREADS_PER_BLOCK / 32,
  FMAS_PER_THREAD = 1000,   /* FFMA instructions */
  ACCESSES_PER_THREAD = 64, /* to shared or global memory */
  CONFLICT_WAYS = 8,
  STRIDE_FLOATS = 32,      /* each thread accesses a separate sector */
  DIVERGENT_BRANCHES = 64, /* by each warp */
  PHASE_US = 1000,         /* arithmetic for this time, then memory reads for this time */
};

/* Launches of the step. Each launches one kernel, except the last, which launches fma_kernel twice. */
enum launch_index {
  LAUNCH_FMA,
  LAUNCH_BANK_CONFLICT,
  LAUNCH_STRIDED,
  LAUNCH_DIVERGENT,
  LAUNCH_POINTER_CHASE,
  LAUNCH_BARRIER,
  LAUNCH_TWO_PHASE,
  LAUNCH_SHORT,
  LAUNCH_FMA_TWICE,
  LAUNCH_COUNT
};
/* Kernels of the step, in order of issue. Each launch but the last has one kernel, with the launch's index. */
enum { KERNEL_FMA_FIRST = LAUNCH_FMA_TWICE, KERNEL_FMA_SECOND, KERNEL_COUNT };
extern const char *const kernel_symbols[KERNEL_COUNT]; /* in order of issue */

typedef struct instruction_fixture {
  rl_instance base;
  rl_device device;
} instruction_fixture;

/* 0; 1 when there is no GPU, with the reason in err; -1 on error. */
int instruction_fixture_open(instruction_fixture *rig, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
