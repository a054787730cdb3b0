/* Kernels of which is known what happens inside: how often instructions run, how accesses conflict, what warps wait for, how the
 * load changes. */
#ifndef RL_TESTS_CUPTI_INSTRUCTION_KERNELS_H
#define RL_TESTS_CUPTI_INSTRUCTION_KERNELS_H

#include "workload.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  INSIDE_BLOCKS = 132,
  INSIDE_THREADS = 256,
  INSIDE_WARPS = INSIDE_BLOCKS * INSIDE_THREADS / 32,
  INSIDE_FMAS = 1000,     /* by each thread */
  INSIDE_ACCESSES = 64,   /* to shared or global memory, by each thread */
  INSIDE_CONFLICTS = 8,   /* ways */
  INSIDE_STRIDE = 32,     /* floats: each thread's in a sector of its own */
  INSIDE_BRANCHES = 64,   /* that divide each warp */
  INSIDE_PHASE_US = 1000, /* arithmetic, then as long reading of memory */
};

/* Launches, each of one kernel named as inside_names says, but for the last, which launches inside_multiplies twice. */
enum inside_launch {
  INSIDE_MULTIPLIES,
  INSIDE_COLLIDES,
  INSIDE_STRIDES,
  INSIDE_DIVERGES,
  INSIDE_CHASES,
  INSIDE_WAITS,
  INSIDE_PHASES,
  INSIDE_SHORT,
  INSIDE_TWICE,
  INSIDE_LAUNCHES
};
enum { INSIDE_KERNELS = INSIDE_LAUNCHES + 1 };
extern const char *const inside_names[INSIDE_KERNELS]; /* symbols, in the order of issue */

typedef struct inside_rig {
  rl_instance base;
  rl_device device;
} inside_rig;

/* 0; 1 when there is no GPU, with the reason in err; -1. */
int inside_open(inside_rig *rig, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
