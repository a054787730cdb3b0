/* An instance of a kernel operator on an open device: buffers, launch and check, shared by the engines of all devices. Inputs are
 * generated from the seed. The check compares the output with the operator's reference. */
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
  int variant;                          /* index into params.op->variants */
  void *in[RL_KERNEL_INPUTS_MAX], *out; /* tensors in device memory */
  rl_launch launch;
  rl_sequence sequence;
  struct rl_thread_pool *thread_pool;       /* host threads that generate inputs and check results */
  void *engine_state;                       /* state of the engine; engine_close releases it */
  void (*engine_close)(void *engine_state); /* frees engine_state; NULL: there is none */
} rl_kernel_instance;

/* Checks what all engines require of rl_kernel_params; for rl_engine.supports. Returns -1 with RL_INPUT. */
int rl_kernel_supports(const void *params, rl_error *err);
/* Allocates an instance and its buffers and fills the inputs. Its iteration is one launch of enqueue, whose arg is the instance,
 * repeated params->samples times. */
int rl_kernel_open(rl_device *device, const void *params, int (*enqueue)(void *arg, rl_stream stream, rl_error *err),
                   rl_kernel_instance **instance, rl_error *err);
/* check.c: sets every byte of the output to 0xff, which is a NaN in every type, so that the check finds elements that the kernel
 * did not write. */
int rl_kernel_poison(rl_kernel_instance *instance, rl_error *err);
/* Implements rl_instance_ops.check (check.c). */
int rl_kernel_check(rl_instance *instance, rl_check *check, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
