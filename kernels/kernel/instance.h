/* One kernel made ready on an open device: what the engines of every device share. Inputs come from the seed, the output is
 * poisoned before it is checked, and the check compares it with the family's reference. */
#ifndef RL_KERNELS_KERNEL_INSTANCE_H
#define RL_KERNELS_KERNEL_INSTANCE_H

#include "kernel/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rl_kernel_instance {
  rl_instance base;
  rl_kernel_params params;
  rl_kernel_shape shape;
  int variant; /* index into the family's */
  void *in[RL_KERNEL_INPUTS], *out;
  rl_launch launch;
  rl_sequence sequence;
  struct rl_threads *threads; /* of the host */
  void *engine;               /* the engine's own; released by engine_close, which may be NULL */
  void (*engine_close)(void *engine);
} rl_kernel_instance;

/* For rl_engine.supports. */
int rl_kernel_supports(const void *params, rl_error *err);
/* Buffers filled, the iteration one launch of enqueue (its argument: the instance), repeated as often as there are samples. */
int rl_kernel_open(rl_device *device, const void *params, int (*enqueue)(void *arg, rl_stream stream, rl_error *err),
                   rl_kernel_instance **instance, rl_error *err);
/* Every byte of the output 0xff: a NaN wherever the kernel does not write. */
int rl_kernel_poison(rl_kernel_instance *instance, rl_error *err);
/* check.c, for rl_instance_ops. */
int rl_kernel_check(rl_instance *instance, rl_check *check, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
