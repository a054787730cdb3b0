/* A device and an instance whose kernels have instruction counts, bank conflicts, stall reasons or phases that follow from the
 * constants below. The tests of daemon/worker/cupti/instruction_profiler.h profile them. */
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
  FMAS_PER_THREAD = 1000,   /* FFMA instructions of fma_kernel */
  ACCESSES_PER_THREAD = 64, /* loads of bank_conflict_kernel from shared memory, and of strided_kernel from global memory */
  CONFLICT_WAYS = 8,        /* lanes of a warp that access the same bank in bank_conflict_kernel */
  STRIDE_FLOATS = 32,       /* distance of the words that neighbouring threads of strided_kernel read, each in its own sector */
  DIVERGENT_BRANCHES = 64,  /* branches of divergent_kernel at which the lanes of each warp diverge */
  PHASE_US = 1000,          /* two_phase_kernel computes for this time, then reads memory for this time */
};

/* The launches of the step, in order. Each launches one kernel, except the last one, which launches fma_kernel twice. */
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
/* Ordinals of the kernels in the step. Up to the last launch, a kernel has the ordinal of its launch; the last launch has the two
 * kernels below. */
enum { KERNEL_FMA_FIRST = LAUNCH_FMA_TWICE, KERNEL_FMA_SECOND, KERNEL_COUNT };
extern const char *const kernel_symbols[KERNEL_COUNT]; /* the kernel's name by its ordinal */

typedef struct instruction_fixture {
  rl_instance base;
  rl_device device;
} instruction_fixture;

/* Allocates the kernels' buffers, opens a stream and fills *fixture. Returns 0; 1 with the reason in err when the machine has
 * no GPU; returns -1 on an error. Nothing is freed before the program ends. */
int instruction_fixture_open(instruction_fixture *fixture, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
