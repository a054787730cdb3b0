/* A step of kernels that stress one thing each. What some of them do is known beforehand. */
#ifndef RL_TESTS_CUPTI_GALLERY_H
#define RL_TESTS_CUPTI_GALLERY_H

#include "workload.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  GALLERY_COPY_BYTES = 64 << 20, /* read, and as many written, by copy */
  GALLERY_FMAS = 512,            /* of each thread of flops and fp64 */
  GALLERY_WARPS = 132 * 8 * 8,
  GALLERY_BANK_LOADS = 256,
  GALLERY_BANK_WARPS = 132 * 8, /* loads of each warp of banks_1 and banks_32 */
  GALLERY_SLEEP_US = 2000,
  GALLERY_ATOMICS = 8192 * 256, /* of threads, one each, without wanting the old value */
  GALLERY_SIDE = 2048,          /* of square matrices: transpose, matrix */
};

/* 0; 1 when there is no GPU, with the reason in err; -1. The buffers live as long as the instance. */
int gallery_open(rl_instance *instance, rl_device *device, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
