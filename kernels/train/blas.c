/* The CPU engine blas: OpenBLAS computes conv2 (after im2col) and the linear layers; loops of simd.c compute the other layers.
 * The threads share the batch in chunks (layers.h).
 *
 * Layout of conv2.weight: [tap][in][out]. Activations are NHWC, so the inputs of one row of taps are 96 contiguous floats: im2col
 * copies three such rows for each output pixel, and pooling works on vectors of channels. A step takes 18.6 MFLOP for each image,
 * 95 % of them in products. */
#include <cblas.h>
#include <string.h>

#include "train/layers.h"

enum {
  BLOCK_IMAGES = 4 /* images in one product of conv2: their im2col takes 664 kB and stays in L2 */
};

typedef struct scratch { /* buffers of one thread */
  float columns[BLOCK_IMAGES * RL_CONV2_PIXELS * RL_CONV2_K], conv2_product[BLOCK_IMAGES * RL_CONV2_PIXELS * RL_CONV2_CHANNELS];
  float pooled1[RL_POOLED1_FLOATS]; /* pooled1 or pooled1_gradient of one image */
  float pooled2[RL_FC1_INPUTS];     /* pooled2 or pooled2_gradient of one image */
  float conv2_weights[RL_CONV2_K * RL_CONV2_CHANNELS];
} scratch;

typedef struct blas {
  rl_layers layers;
  rl_values pooled1_gradient;
  scratch *scratch; /* [threads] */
} blas;

/* --- forward ----------------------------------------------------------------------------------------------------------- */

/* An rl_batch_chunk_task. Computes conv1, ReLU and pooling for the images of a chunk. */
static void conv1_forward_chunk(rl_layers *layers, rl_batch_chunk chunk, uint32_t thread) {
  scratch *thread_scratch = &((blas *)layers)->scratch[thread];
  float weight_buffer[9 * RL_CONV1_CHANNELS], bias_buffer[RL_CONV1_CHANNELS];
  const float *weights = rl_weights_as_floats(layers, rl_tensor_offset(RL_CONV1_W), 9 * RL_CONV1_CHANNELS, weight_buffer),
              *bias = rl_weights_as_floats(layers, rl_tensor_offset(RL_CONV1_B), RL_CONV1_CHANNELS, bias_buffer);
  for (uint32_t i = chunk.first; i < chunk.end; i++) {
    size_t offset = (size_t)i * RL_POOLED1_FLOATS;
    float *y = rl_values_float_buffer(layers, layers->pooled1, offset, thread_scratch->pooled1);
    layers->simd->conv1_forward(layers->train.x + (size_t)i * RL_IMAGE_PIXELS, weights, bias, y, layers->argmax1 + offset);
    rl_store_values(layers, layers->pooled1, offset, RL_POOLED1_FLOATS, y);
  }
}

/* Writes the im2col of conv2's inputs, for `images` images beginning with `first`, to thread_scratch->columns. */
static void im2col_images(const rl_layers *layers, scratch *thread_scratch, uint32_t first, uint32_t images) {
  for (uint32_t k = 0; k < images; k++) {
    const float *x = rl_values_as_floats(layers, layers->pooled1, (size_t)(first + k) * RL_POOLED1_FLOATS, RL_POOLED1_FLOATS,
                                         thread_scratch->pooled1);
    layers->simd->im2col(x, thread_scratch->columns + (size_t)k * RL_CONV2_PIXELS * RL_CONV2_K);
  }
}

/* An rl_batch_chunk_task. Computes conv2, ReLU and pooling for the images of a chunk, BLOCK_IMAGES images at a time. */
static void conv2_forward_chunk(rl_layers *layers, rl_batch_chunk chunk, uint32_t thread) {
  scratch *thread_scratch = &((blas *)layers)->scratch[thread];
  float bias_buffer[RL_CONV2_CHANNELS];
  if (chunk.first == chunk.end) return;
  const float *weights =
      rl_weights_as_floats(layers, rl_tensor_offset(RL_CONV2_W), RL_CONV2_K * RL_CONV2_CHANNELS, thread_scratch->conv2_weights);
  const float *bias = rl_weights_as_floats(layers, rl_tensor_offset(RL_CONV2_B), RL_CONV2_CHANNELS, bias_buffer);
  for (uint32_t first = chunk.first; first < chunk.end; first += BLOCK_IMAGES) {
    uint32_t images = chunk.end - first < BLOCK_IMAGES ? chunk.end - first : BLOCK_IMAGES;
    im2col_images(layers, thread_scratch, first, images);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)images * RL_CONV2_PIXELS, RL_CONV2_CHANNELS, RL_CONV2_K, 1,
                thread_scratch->columns, RL_CONV2_K, weights, RL_CONV2_CHANNELS, 0, thread_scratch->conv2_product,
                RL_CONV2_CHANNELS);
    for (uint32_t k = 0; k < images; k++) {
      size_t offset = (size_t)(first + k) * RL_FC1_INPUTS;
      float *y = rl_values_float_buffer(layers, layers->pooled2, offset, thread_scratch->pooled2);
      layers->simd->pool2_forward(thread_scratch->conv2_product + (size_t)k * RL_CONV2_PIXELS * RL_CONV2_CHANNELS, bias, y,
                                  layers->argmax2 + offset);
      rl_store_values(layers, layers->pooled2, offset, RL_FC1_INPUTS, y);
    }
  }
}

static void conv1_forward(rl_cpu_train *train, uint32_t n) { rl_run_batch_chunks((rl_layers *)train, n, conv1_forward_chunk); }
static void conv2_forward(rl_cpu_train *train, uint32_t n) { rl_run_batch_chunks((rl_layers *)train, n, conv2_forward_chunk); }

/* --- backward ---------------------------------------------------------------------------------------------------------- */

/* An rl_batch_chunk_task. Computes the gradients of conv2's weights and bias, summed over the chunk, and the gradient of its
 * input (pooled1_gradient). */
static void conv2_backward_chunk(rl_layers *layers, rl_batch_chunk chunk, uint32_t thread) {
  blas *engine = (blas *)layers;
  scratch *thread_scratch = &engine->scratch[thread];
  float *dw = chunk.sums + rl_tensor_offset(RL_CONV2_W), *db = chunk.sums + rl_tensor_offset(RL_CONV2_B);
  memset(dw, 0, sizeof(float) * (RL_CONV2_K * RL_CONV2_CHANNELS + RL_CONV2_CHANNELS));
  if (chunk.first == chunk.end) return;
  const float *weights =
      rl_weights_as_floats(layers, rl_tensor_offset(RL_CONV2_W), RL_CONV2_K * RL_CONV2_CHANNELS, thread_scratch->conv2_weights);
  for (uint32_t first = chunk.first; first < chunk.end; first += BLOCK_IMAGES) {
    uint32_t images = chunk.end - first < BLOCK_IMAGES ? chunk.end - first : BLOCK_IMAGES;
    int positions = (int)images * RL_CONV2_PIXELS;
    im2col_images(layers, thread_scratch, first, images);
    for (uint32_t k = 0; k < images; k++) {
      size_t offset = (size_t)(first + k) * RL_FC1_INPUTS;
      const float *dy = rl_values_as_floats(layers, layers->pooled2_gradient, offset, RL_FC1_INPUTS, thread_scratch->pooled2);
      layers->simd->pool2_gradient(dy, layers->argmax2 + offset,
                                   thread_scratch->conv2_product + (size_t)k * RL_CONV2_PIXELS * RL_CONV2_CHANNELS, db);
    }
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, RL_CONV2_K, RL_CONV2_CHANNELS, positions, 1, thread_scratch->columns,
                RL_CONV2_K, thread_scratch->conv2_product, RL_CONV2_CHANNELS, 1, dw, RL_CONV2_CHANNELS);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, positions, RL_CONV2_K, RL_CONV2_CHANNELS, 1,
                thread_scratch->conv2_product, RL_CONV2_CHANNELS, weights, RL_CONV2_CHANNELS, 0, thread_scratch->columns,
                RL_CONV2_K);
    for (uint32_t k = 0; k < images; k++) {
      size_t offset = (size_t)(first + k) * RL_POOLED1_FLOATS;
      float *dx = rl_values_float_buffer(layers, engine->pooled1_gradient, offset, thread_scratch->pooled1);
      layers->simd->col2im(thread_scratch->columns + (size_t)k * RL_CONV2_PIXELS * RL_CONV2_K, dx);
      rl_store_values(layers, engine->pooled1_gradient, offset, RL_POOLED1_FLOATS, dx);
    }
  }
}

/* An rl_batch_chunk_task. Computes the gradients of conv1's weights and bias, summed over the chunk. */
static void conv1_backward_chunk(rl_layers *layers, rl_batch_chunk chunk, uint32_t thread) {
  blas *engine = (blas *)layers;
  memset(chunk.sums, 0, sizeof(float) * (9 * RL_CONV1_CHANNELS + RL_CONV1_CHANNELS));
  for (uint32_t i = chunk.first; i < chunk.end; i++) {
    size_t offset = (size_t)i * RL_POOLED1_FLOATS;
    const float *dy =
        rl_values_as_floats(layers, engine->pooled1_gradient, offset, RL_POOLED1_FLOATS, engine->scratch[thread].pooled1);
    layers->simd->conv1_gradient(layers->train.x + (size_t)i * RL_IMAGE_PIXELS, dy, layers->argmax1 + offset,
                                 chunk.sums + rl_tensor_offset(RL_CONV1_W), chunk.sums + rl_tensor_offset(RL_CONV1_B));
  }
}

static void conv2_backward(rl_cpu_train *train, uint32_t n) { rl_run_batch_chunks((rl_layers *)train, n, conv2_backward_chunk); }

static void conv1_backward(rl_cpu_train *train, uint32_t n) {
  rl_run_batch_chunks((rl_layers *)train, n, conv1_backward_chunk);
  rl_sum_batch_chunks((rl_layers *)train);
}

/* --- the engine --------------------------------------------------------------------------------------------------------- */

static const rl_cpu_layer forward[] = {{"conv1_forward", conv1_forward},
                                       {"conv2_forward", conv2_forward},
                                       {"fc1_forward", rl_fc1_forward},
                                       {"fc2_forward", rl_fc2_forward},
                                       {0}};
static const rl_cpu_layer backward[] = {{"fc2_backward", rl_fc2_backward},
                                        {"fc1_backward", rl_fc1_backward},
                                        {"conv2_backward", conv2_backward},
                                        {"conv1_backward", conv1_backward},
                                        {0}};

/* Implements rl_cpu_engine_ops.parameter_index. */
static uint32_t parameter_index(uint32_t parameter) {
  if (parameter < rl_tensor_offset(RL_CONV2_W) || parameter >= rl_tensor_offset(RL_CONV2_B))
    return rl_layers_parameter_index(parameter);
  uint32_t i = parameter - rl_tensor_offset(RL_CONV2_W);
  return rl_tensor_offset(RL_CONV2_W) + (i % 9 * RL_CONV1_CHANNELS + i / 9 % RL_CONV1_CHANNELS) * RL_CONV2_CHANNELS +
         i / RL_CONV2_K;
}

static bool read_value(rl_cpu_train *train, rl_cpu_value value, uint32_t n, double *out) {
  if (value != RL_VALUE_POOLED1_GRADIENT) return rl_layers_read_value(train, value, n, out);
  rl_layers_read_planes((rl_layers *)train, ((blas *)train)->pooled1_gradient, NULL, n, RL_POOLED1_PIXELS, RL_CONV1_CHANNELS,
                        out);
  return true;
}

static int prepare(rl_cpu_train *train, rl_error *err) {
  blas *engine = (blas *)train;
  size_t pooled1_gradient_bytes =
      (size_t)train->instance.params.batch_size * RL_POOLED1_FLOATS * (train->fp16 ? sizeof(uint16_t) : sizeof(float));
  if (rl_layers_prepare(train, err) < 0 ||
      rl_cpu_allocate(train, RL_MEMORY_ACTIVATIONS, pooled1_gradient_bytes, &engine->pooled1_gradient.data, err) < 0)
    return -1;
  size_t bytes = sizeof(scratch) * rl_thread_pool_thread_count(train->thread_pool);
  return rl_cpu_allocate(train, RL_MEMORY_WORKSPACE, bytes, (void **)&engine->scratch, err);
}

static const rl_cpu_engine_ops ops = {.threaded = true,
                                      .size = sizeof(blas),
                                      .forward = forward,
                                      .backward = backward,
                                      .parameter_index = parameter_index,
                                      .prepare = prepare,
                                      .on_start = rl_layers_on_start,
                                      .on_weights_changed = rl_layers_on_weights_changed,
                                      .all_finite = rl_layers_all_finite,
                                      .adam = rl_layers_adam,
                                      .read_value = read_value};

static int open_blas(rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  return rl_cpu_open(&ops, device, params, instance, err);
}

const rl_engine rl_engine_blas = {.description = &rl_train_blas, .open = open_blas};
