/* The CPU engine fused: a thread computes both convolutions of one image, forward or backward, before those of the next image, so
 * that the image stays in cache.
 *
 * Forward stores only the pooled outputs and their argmaxes, which backward needs. It uses no im2col and stores no outputs before
 * pooling. Backward uses only the outputs that max-pooling selected (direct.h), and keeps the gradient of conv1's output for only
 * one image at a time. layers.c has the linear layers, the division of the batch among threads, and Adam. Layout of conv2.weight:
 * [out][tap][in]; the engine also keeps a copy in the order in which forward reads the weights. */
#include <string.h>

#include "train/direct.h"
#include "train/layers.h"

typedef struct scratch { /* buffers of one thread, for one image */
  float pooled1[RL_POOLED1_FLOATS], pooled1_gradient[RL_POOLED1_FLOATS], pooled2[RL_FC1_INPUTS], pooled2_gradient[RL_FC1_INPUTS];
} scratch;

typedef struct fused {
  rl_layers layers;
  const rl_direct *direct;
  const float *conv2_weights;     /* [64][9][32]. fp32: points into train.weights; fp16: to conv2_weights_rounded */
  float *conv2_weights_rounded;   /* fp16: weights rounded to binary16, as floats; fp32: NULL */
  float *conv2_weights_reordered; /* a copy, in the order in which rl_direct.forward reads the weights */
  scratch *scratch;               /* [threads] */
} fused;

/* An rl_batch_chunk_task. Computes both convolutions, ReLU and pooling for the images of a chunk. */
static void forward_chunk(rl_layers *layers, rl_batch_chunk chunk, uint32_t thread) {
  fused *engine = (fused *)layers;
  scratch *thread_scratch = &engine->scratch[thread];
  float conv1_buffer[9 * RL_CONV1_CHANNELS + RL_CONV1_CHANNELS], conv2_bias_buffer[RL_CONV2_CHANNELS];
  const float *conv1_weights =
      rl_weights_as_floats(layers, rl_tensor_offset(RL_CONV1_W), 9 * RL_CONV1_CHANNELS + RL_CONV1_CHANNELS, conv1_buffer);
  const float *conv2_bias = rl_weights_as_floats(layers, rl_tensor_offset(RL_CONV2_B), RL_CONV2_CHANNELS, conv2_bias_buffer);
  for (size_t i = chunk.first; i < chunk.end; i++) {
    float *pooled1 = rl_values_float_buffer(layers, layers->pooled1, i * RL_POOLED1_FLOATS, thread_scratch->pooled1),
          *pooled2 = rl_values_float_buffer(layers, layers->pooled2, i * RL_FC1_INPUTS, thread_scratch->pooled2);
    layers->simd->conv1_forward(layers->train.x + i * RL_IMAGE_PIXELS, conv1_weights, conv1_weights + 9 * RL_CONV1_CHANNELS,
                                pooled1, layers->argmax1 + i * RL_POOLED1_FLOATS);
    rl_store_values(layers, layers->pooled1, i * RL_POOLED1_FLOATS, RL_POOLED1_FLOATS, pooled1);
    engine->direct->forward(
        rl_values_as_floats(layers, layers->pooled1, i * RL_POOLED1_FLOATS, RL_POOLED1_FLOATS, thread_scratch->pooled1),
        engine->conv2_weights_reordered, conv2_bias, pooled2, layers->argmax2 + i * RL_FC1_INPUTS);
    rl_store_values(layers, layers->pooled2, i * RL_FC1_INPUTS, RL_FC1_INPUTS, pooled2);
  }
}

/* An rl_batch_chunk_task. Computes the gradients of both convolutions, summed over the chunk. */
static void backward_chunk(rl_layers *layers, rl_batch_chunk chunk, uint32_t thread) {
  fused *engine = (fused *)layers;
  scratch *thread_scratch = &engine->scratch[thread];
  float *sums = chunk.sums;
  memset(sums, 0, sizeof(float) * RL_CONV_GRADIENTS);
  for (size_t i = chunk.first; i < chunk.end; i++) {
    const float *pooled1 = rl_values_as_floats(layers, layers->pooled1, i * RL_POOLED1_FLOATS, RL_POOLED1_FLOATS,
                                               thread_scratch->pooled1),
                *pooled2_gradient = rl_values_as_floats(layers, layers->pooled2_gradient, i * RL_FC1_INPUTS, RL_FC1_INPUTS,
                                                        thread_scratch->pooled2_gradient);
    const uint8_t *argmax2 = layers->argmax2 + i * RL_FC1_INPUTS;
    engine->direct->weight_gradient(pooled1, pooled2_gradient, argmax2, sums + rl_tensor_offset(RL_CONV2_W),
                                    sums + rl_tensor_offset(RL_CONV2_B));
    engine->direct->input_gradient(pooled2_gradient, argmax2, engine->conv2_weights, thread_scratch->pooled1_gradient);
    layers->simd->conv1_gradient(layers->train.x + i * RL_IMAGE_PIXELS, thread_scratch->pooled1_gradient,
                                 layers->argmax1 + i * RL_POOLED1_FLOATS, sums + rl_tensor_offset(RL_CONV1_W),
                                 sums + rl_tensor_offset(RL_CONV1_B));
  }
}

static void convolutions_forward(rl_cpu_train *train, uint32_t n) { rl_run_batch_chunks((rl_layers *)train, n, forward_chunk); }

static void convolutions_backward(rl_cpu_train *train, uint32_t n) {
  rl_run_batch_chunks((rl_layers *)train, n, backward_chunk);
  rl_sum_batch_chunks((rl_layers *)train);
}

static const rl_cpu_layer forward[] = {
    {"convolutions_forward", convolutions_forward}, {"fc1_forward", rl_fc1_forward}, {"fc2_forward", rl_fc2_forward}, {0}};
static const rl_cpu_layer backward[] = {
    {"fc2_backward", rl_fc2_backward}, {"fc1_backward", rl_fc1_backward}, {"convolutions_backward", convolutions_backward}, {0}};

static uint32_t parameter_index(uint32_t parameter) {
  if (parameter < rl_tensor_offset(RL_CONV2_W) || parameter >= rl_tensor_offset(RL_CONV2_B))
    return rl_layers_parameter_index(parameter);
  uint32_t i = parameter - rl_tensor_offset(RL_CONV2_W);
  return rl_tensor_offset(RL_CONV2_W) + i / RL_CONV2_K * RL_CONV2_K + i % 9 * RL_CONV1_CHANNELS + i / 9 % RL_CONV1_CHANNELS;
}

/* Updates the copies of conv2.weight after a change of the parameters. */
static void update_conv2_weights(fused *engine) {
  rl_layers *layers = &engine->layers;
  engine->conv2_weights =
      rl_weights_as_floats(layers, rl_tensor_offset(RL_CONV2_W), RL_CONV2_K * RL_CONV2_CHANNELS, engine->conv2_weights_rounded);
  engine->direct->reorder_weights(engine->conv2_weights, engine->conv2_weights_reordered);
}

static void on_weights_changed(rl_cpu_train *train) {
  rl_layers_on_weights_changed(train);
  update_conv2_weights((fused *)train);
}

static void adam(rl_cpu_train *train, uint64_t step, double rate, float scale) {
  rl_layers_adam(train, step, rate, scale);
  update_conv2_weights((fused *)train);
}

static int prepare(rl_cpu_train *train, rl_error *err) {
  fused *engine = (fused *)train;
  const size_t weight_bytes = sizeof(float) * RL_CONV2_K * RL_CONV2_CHANNELS,
               scratch_bytes = sizeof(scratch) * rl_thread_pool_thread_count(train->thread_pool);
  const rl_direct *usable[RL_DIRECT_TABLES] = {NULL};
  rl_direct_list_usable(usable);
  engine->direct = usable[0];
  if (rl_layers_prepare(train, err) < 0 ||
      rl_cpu_allocate(train, RL_MEMORY_WORKSPACE, weight_bytes, (void **)&engine->conv2_weights_reordered, err) < 0 ||
      rl_cpu_allocate(train, RL_MEMORY_WORKSPACE, scratch_bytes, (void **)&engine->scratch, err) < 0)
    return -1;
  return train->fp16 ? rl_cpu_allocate(train, RL_MEMORY_WORKSPACE, weight_bytes, (void **)&engine->conv2_weights_rounded, err)
                     : 0;
}

static const rl_cpu_engine_ops ops = {.threaded = true,
                                      .size = sizeof(fused),
                                      .forward = forward,
                                      .backward = backward,
                                      .parameter_index = parameter_index,
                                      .prepare = prepare,
                                      .on_start = rl_layers_on_start,
                                      .on_weights_changed = on_weights_changed,
                                      .all_finite = rl_layers_all_finite,
                                      .adam = adam,
                                      .read_value = rl_layers_read_value};

static int device_supports(const void *params, rl_error *err) {
  (void)params;
  const rl_direct *usable[RL_DIRECT_TABLES];
  if (rl_direct_list_usable(usable) > 0) return 0;
  return rl_fail_at(err, "/engine", "engine fused needs a CPU with AVX2 and FMA; use \"auto\"");
}

static int open_fused(rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  if (device_supports(params, err) < 0) return -1;
  return rl_cpu_open(&ops, device, params, instance, err);
}

const rl_engine rl_engine_cpu_fused = {
    .description = &rl_train_cpu_fused, .open = open_fused, .device_supports = device_supports};
