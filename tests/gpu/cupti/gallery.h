/* A step of kernels that stress one hardware unit each; some have metrics that follow from these constants. */
#ifndef RL_TESTS_CUPTI_GALLERY_H
#define RL_TESTS_CUPTI_GALLERY_H

#include "workload.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  GALLERY_COPY_BYTES = 64 << 20, /* read by copy, and as many written */
  GALLERY_FMAS_PER_THREAD = 512, /* of flops and fp64 */
  GALLERY_WARPS = 132 * 8 * 8,
  GALLERY_BANK_LOADS_PER_WARP = 256, /* of banks_1 and banks_32 */
  GALLERY_BANK_WARPS = 132 * 8,
  GALLERY_SLEEP_US = 2000,
  GALLERY_ATOMIC_ADDS = 8192 * 256, /* one per thread; the old value is not used */
  GALLERY_SIDE = 2048,              /* side of the square matrices of transpose and matrix */
};

/* 0; 1 when there is no GPU, with the reason in err; -1 on error. Closing the instance frees the buffers. */
int gallery_open(rl_instance *instance, rl_device *device, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
