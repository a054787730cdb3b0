/* A step of 19 launches, each of a kernel that stresses one unit of the GPU. For some of the kernels, the counts of bytes or
 * instructions follow exactly from the constants below, so that tests can compare counters with them. */
#ifndef RL_TESTS_CUPTI_GALLERY_H
#define RL_TESTS_CUPTI_GALLERY_H

#include "workload.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  GALLERY_COPY_BYTES = 64 << 20,     /* bytes that kernel "copy" reads; it writes as many */
  GALLERY_FMAS_PER_THREAD = 512,     /* multiply-adds per thread of kernels "flops" and "fp64" */
  GALLERY_WARPS = 132 * 8 * 8,       /* warps of kernels "flops" and "fp64": 8 blocks of 8 warps per SM of an H200 */
  GALLERY_BANK_LOADS_PER_WARP = 256, /* shared-memory loads per warp of kernels "banks_1" and "banks_32" */
  GALLERY_BANK_WARPS = 132 * 8,      /* warps of kernels "banks_1" and "banks_32" */
  GALLERY_SLEEP_US = 2000,           /* duration of kernel "sleep" */
  GALLERY_ATOMIC_ADDS = 8192 * 256,  /* additions of kernel "atomics", one per thread; the old value is not used */
  GALLERY_SIDE = 2048,               /* rows, and columns, of the square matrices of most kernels */
};

/* Allocates the buffers, opens the stream of `device` and fills `instance`, whose closing frees the buffers. Returns 0; 1 with
 * the reason in err when the machine has no GPU; returns -1 on an error. */
int gallery_open(rl_instance *instance, rl_device *device, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
