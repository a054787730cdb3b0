/* An instance of the layer on an open device: its tensors, the launches of a step, and the check of its results. The engines of
 * all devices use it. */
#ifndef RL_KERNELS_LAYER_INSTANCE_H
#define RL_KERNELS_LAYER_INSTANCE_H

#include "layer/tensors.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { RL_LAYER_LAUNCHES_MAX = 16 };

typedef struct rl_layer_instance {
  rl_instance base;
  rl_layer_params params;
  int stored_dtype; /* rl_dtype of the tensors in memory */
  /* Tensors on the device. inputs[RL_LAYER_INITIAL_QKV] is NULL, because the cached tokens are stored in stages[RL_LAYER_QKV]. */
  void *inputs[RL_LAYER_INPUT_COUNT], *stages[RL_LAYER_STAGE_COUNT];
  rl_launch launches[RL_LAYER_LAUNCHES_MAX];
  rl_sequence step;
  struct rl_thread_pool *thread_pool; /* host threads that generate inputs and check results */
  void *engine_state;                 /* state of the engine, which engine_close frees */
  void (*engine_close)(void *engine_state);
} rl_layer_instance;

/* Allocates an instance with its tensors, fills the inputs and sets the results to NaN. Its step has no launches yet. */
int rl_layer_open(rl_device *device, const rl_layer_params *params, int stored_dtype, rl_layer_instance **instance,
                  rl_error *err);
/* Adds a launch to the step. enqueue is called with the instance as arg. nvtx_range: "attention" or "feed_forward". */
void rl_layer_add_launch(rl_layer_instance *instance, const char *name, const char *nvtx_range,
                         int (*enqueue)(void *arg, rl_stream stream, rl_error *err));
/* Fills rotations[context][head_size] with the angles of the rotary position embedding (RoPE): the cosine and the sine for each
 * pair of elements of a head, at each position. */
int rl_layer_fill_rotations(rl_layer_instance *instance, float *rotations, rl_error *err);
/* Implements rl_instance_ops.check (check.c). Sets all results to NaN, runs the step once, and compares each stage of a sample of
 * rows with the reference. The reference computes a stage from the device's result of the previous stage. */
int rl_layer_check(rl_instance *instance, rl_check *check, rl_error *err);
/* Sets all results to NaN, so that the check notices results that a step does not write. Then restores the cached tokens, which
 * are inputs but are stored in stages[RL_LAYER_QKV]. */
int rl_layer_poison(rl_layer_instance *instance, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
