/* Implements layers.h, the code that the CPU engines blas and fused share. */
#include "train/layers.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

enum {
  FC1_TASK_OUTPUTS = 32,               /* outputs of fc1 that one task of the forward pass computes, for all images */
  FC1_TASK_INPUTS = RL_FC1_INPUTS / 8, /* inputs of fc1 whose gradients one task of the backward pass computes */
  FC1_TASK_WEIGHTS = FC1_TASK_OUTPUTS * RL_FC1_INPUTS /* weights of fc1 that a task uses */
};
_Static_assert(FC1_TASK_WEIGHTS >= RL_FC1_OUTPUTS * FC1_TASK_INPUTS, "a task uses at most FC1_TASK_WEIGHTS weights");

static float *gradient_tensor(rl_layers *layers, rl_tensor tensor) { return layers->train.gradients + rl_tensor_offset(tensor); }

float *rl_values_as_floats(const rl_layers *layers, rl_values values, size_t offset, size_t count, float *buffer) {
  if (!layers->train.fp16) return (float *)values.data + offset;
  layers->simd->from_half(count, (const uint16_t *)values.data + offset, buffer);
  return buffer;
}

float *rl_values_float_buffer(const rl_layers *layers, rl_values values, size_t offset, float *buffer) {
  return layers->train.fp16 ? buffer : (float *)values.data + offset;
}

void rl_store_values(const rl_layers *layers, rl_values values, size_t offset, size_t count, const float *computed) {
  if (layers->train.fp16) layers->simd->to_half(count, computed, (uint16_t *)values.data + offset);
}

const float *rl_weights_as_floats(const rl_layers *layers, size_t offset, size_t count, float *buffer) {
  if (!layers->train.fp16) return layers->train.weights + offset;
  layers->simd->from_half(count, layers->fp16_weights + offset, buffer);
  return buffer;
}

/* --- batch chunks ------------------------------------------------------------------------------------------------------ */

typedef struct task_context {
  rl_layers *layers;
  uint32_t n; /* images in the batch */
  rl_batch_chunk_task *chunk_task;
} task_context;

/* Runs task(context, number, thread) for the numbers 0 to tasks - 1, on all threads of the engine, and waits for all of them. The
 * context is a task_context. */
static void run_tasks(rl_layers *layers, uint32_t n, uint32_t tasks, rl_task *task) {
  task_context shared = {.layers = layers, .n = n};
  rl_thread_pool_run(layers->train.thread_pool, tasks, task, &shared);
}

/* Returns the first image of a chunk. */
static uint32_t chunk_start(uint32_t n, uint32_t chunk) { return (uint32_t)((uint64_t)n * chunk / RL_BATCH_CHUNKS); }

static void run_chunk(void *context, uint32_t number, uint32_t thread) {
  const task_context *shared = context;
  rl_layers *layers = shared->layers;
  rl_batch_chunk chunk = {chunk_start(shared->n, number), chunk_start(shared->n, number + 1),
                          layers->chunk_sums + (size_t)number * RL_CONV_GRADIENTS};
  shared->chunk_task(layers, chunk, thread);
}

void rl_run_batch_chunks(rl_layers *layers, uint32_t n, rl_batch_chunk_task *task) {
  task_context shared = {layers, n, task};
  rl_thread_pool_run(layers->train.thread_pool, RL_BATCH_CHUNKS, run_chunk, &shared);
}

/* Task of rl_sum_batch_chunks: adds up one part of the gradients over all chunks. */
static void sum_chunks(void *context, uint32_t part, uint32_t thread) {
  (void)thread;
  rl_layers *layers = ((const task_context *)context)->layers;
  size_t first = (size_t)RL_CONV_GRADIENTS * part / RL_BATCH_CHUNKS,
         count = (size_t)RL_CONV_GRADIENTS * (part + 1) / RL_BATCH_CHUNKS - first;
  float *sum = layers->train.gradients + first;
  memcpy(sum, layers->chunk_sums + first, sizeof *sum * count);
  for (size_t chunk = 1; chunk < RL_BATCH_CHUNKS; chunk++)
    layers->simd->add(count, layers->chunk_sums + chunk * RL_CONV_GRADIENTS + first, sum);
}

void rl_sum_batch_chunks(rl_layers *layers) { run_tasks(layers, 0, RL_BATCH_CHUNKS, sum_chunks); }

/* --- the linear layers ------------------------------------------------------------------------------------------------- */

/* Returns the thread's buffer for fc1's weights as floats. fp32: NULL, because the weights are floats already. */
static float *fc1_weight_buffer(const rl_layers *layers, uint32_t thread) {
  return layers->train.fp16 ? layers->fc1_weights + (size_t)thread * FC1_TASK_WEIGHTS : NULL;
}

/* Task of fc1's forward pass: computes FC1_TASK_OUTPUTS outputs. */
static void fc1_forward_rows(void *context, uint32_t task, uint32_t thread) {
  const task_context *shared = context;
  rl_layers *layers = shared->layers;
  const float *weights =
      rl_weights_as_floats(layers, rl_tensor_offset(RL_FC1_W) + (size_t)task * FC1_TASK_OUTPUTS * RL_FC1_INPUTS, FC1_TASK_WEIGHTS,
                           fc1_weight_buffer(layers, thread));
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)shared->n, FC1_TASK_OUTPUTS, RL_FC1_INPUTS, 1, layers->pooled2_floats,
              RL_FC1_INPUTS, weights, RL_FC1_INPUTS, 0, layers->hidden_floats + task * FC1_TASK_OUTPUTS, RL_FC1_OUTPUTS);
}

void rl_fc1_forward(rl_cpu_train *train, uint32_t n) {
  rl_layers *layers = (rl_layers *)train;
  float buffer[RL_FC1_OUTPUTS];
  rl_values_as_floats(layers, layers->pooled2, 0, (size_t)n * RL_FC1_INPUTS, layers->pooled2_floats);
  run_tasks(layers, n, RL_FC1_OUTPUTS / FC1_TASK_OUTPUTS, fc1_forward_rows);
  layers->simd->bias_relu(n, RL_FC1_OUTPUTS, rl_weights_as_floats(layers, rl_tensor_offset(RL_FC1_B), RL_FC1_OUTPUTS, buffer),
                          layers->hidden_floats);
  rl_store_values(layers, layers->hidden, 0, (size_t)n * RL_FC1_OUTPUTS, layers->hidden_floats);
}

/* Rounds values to binary16, in place, if the precision is fp16. */
static void round_to_half(const rl_layers *layers, size_t count, float *values) {
  uint16_t halves[256];
  for (size_t i = 0; layers->train.fp16 && i < count; i += 256) {
    size_t length = count - i < 256 ? count - i : 256;
    layers->simd->to_half(length, values + i, halves);
    layers->simd->from_half(length, halves, values + i);
  }
}

void rl_fc2_forward(rl_cpu_train *train, uint32_t n) {
  rl_layers *layers = (rl_layers *)train;
  float buffer[RL_CLASSES * RL_FC1_OUTPUTS], bias_buffer[RL_CLASSES];
  rl_values_as_floats(layers, layers->hidden, 0, (size_t)n * RL_FC1_OUTPUTS, layers->hidden_floats);
  const float *weights = rl_weights_as_floats(layers, rl_tensor_offset(RL_FC2_W), RL_CLASSES * RL_FC1_OUTPUTS, buffer);
  const float *bias = rl_weights_as_floats(layers, rl_tensor_offset(RL_FC2_B), RL_CLASSES, bias_buffer);
  for (uint32_t i = 0; i < n; i++) memcpy(train->logits + i * RL_CLASSES, bias, sizeof(float) * RL_CLASSES);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, RL_CLASSES, RL_FC1_OUTPUTS, 1, layers->hidden_floats,
              RL_FC1_OUTPUTS, weights, RL_FC1_OUTPUTS, 1, train->logits, RL_CLASSES);
  round_to_half(layers, (size_t)n * RL_CLASSES, train->logits);
}

/* Sets sum[count] to the sum of the n rows of rows[n][count]. */
static void sum_rows(const rl_layers *layers, uint32_t n, uint32_t count, const float *rows, float *sum) {
  memset(sum, 0, sizeof *sum * count);
  for (uint32_t i = 0; i < n; i++) layers->simd->add(count, rows + (size_t)i * count, sum);
}

void rl_fc2_backward(rl_cpu_train *train, uint32_t n) {
  rl_layers *layers = (rl_layers *)train;
  float buffer[RL_CLASSES * RL_FC1_OUTPUTS];
  const float *weights = rl_weights_as_floats(layers, rl_tensor_offset(RL_FC2_W), RL_CLASSES * RL_FC1_OUTPUTS, buffer);
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, RL_CLASSES, RL_FC1_OUTPUTS, (int)n, 1, train->logits_gradient, RL_CLASSES,
              layers->hidden_floats, RL_FC1_OUTPUTS, 0, gradient_tensor(layers, RL_FC2_W), RL_FC1_OUTPUTS);
  sum_rows(layers, n, RL_CLASSES, train->logits_gradient, gradient_tensor(layers, RL_FC2_B));
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, RL_FC1_OUTPUTS, RL_CLASSES, 1, train->logits_gradient,
              RL_CLASSES, weights, RL_FC1_OUTPUTS, 0, layers->fc1_product_gradient_floats, RL_FC1_OUTPUTS);
  for (size_t i = 0; i < (size_t)n * RL_FC1_OUTPUTS; i++)
    if (layers->hidden_floats[i] <= 0) layers->fc1_product_gradient_floats[i] = 0;
  rl_store_values(layers, layers->fc1_product_gradient, 0, (size_t)n * RL_FC1_OUTPUTS, layers->fc1_product_gradient_floats);
}

/* Task of fc1's backward pass: computes the gradients of the weights and of the inputs, for FC1_TASK_INPUTS inputs. */
static void fc1_backward_columns(void *context, uint32_t task, uint32_t thread) {
  const task_context *shared = context;
  rl_layers *layers = shared->layers;
  size_t first = (size_t)task * FC1_TASK_INPUTS;
  const float *weights = layers->train.weights + rl_tensor_offset(RL_FC1_W) + first;
  int stride = RL_FC1_INPUTS;
  if (layers->train.fp16) {
    float *task_weights = fc1_weight_buffer(layers, thread);
    for (int output = 0; output < RL_FC1_OUTPUTS; output++)
      layers->simd->from_half(FC1_TASK_INPUTS,
                              layers->fp16_weights + rl_tensor_offset(RL_FC1_W) + (size_t)output * RL_FC1_INPUTS + first,
                              task_weights + output * FC1_TASK_INPUTS);
    weights = task_weights;
    stride = FC1_TASK_INPUTS;
  }
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, RL_FC1_OUTPUTS, FC1_TASK_INPUTS, (int)shared->n, 1,
              layers->fc1_product_gradient_floats, RL_FC1_OUTPUTS, layers->pooled2_floats + first, RL_FC1_INPUTS, 0,
              gradient_tensor(layers, RL_FC1_W) + first, RL_FC1_INPUTS);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)shared->n, FC1_TASK_INPUTS, RL_FC1_OUTPUTS, 1,
              layers->fc1_product_gradient_floats, RL_FC1_OUTPUTS, weights, stride, 0, layers->pooled2_gradient_floats + first,
              RL_FC1_INPUTS);
}

void rl_fc1_backward(rl_cpu_train *train, uint32_t n) {
  rl_layers *layers = (rl_layers *)train;
  rl_values_as_floats(layers, layers->fc1_product_gradient, 0, (size_t)n * RL_FC1_OUTPUTS, layers->fc1_product_gradient_floats);
  sum_rows(layers, n, RL_FC1_OUTPUTS, layers->fc1_product_gradient_floats, gradient_tensor(layers, RL_FC1_B));
  run_tasks(layers, n, RL_FC1_INPUTS / FC1_TASK_INPUTS, fc1_backward_columns);
  rl_store_values(layers, layers->pooled2_gradient, 0, (size_t)n * RL_FC1_INPUTS, layers->pooled2_gradient_floats);
}

/* --- parameters -------------------------------------------------------------------------------------------------------- */

uint32_t rl_layers_parameter_index(uint32_t parameter) {
  uint32_t tensor = 0;
  while (parameter >= rl_tensor_offsets[tensor + 1]) tensor++;
  uint32_t i = parameter - rl_tensor_offsets[tensor], base = rl_tensor_offsets[tensor];
  switch (tensor) {
    case RL_CONV1_W: return base + i % 9 * RL_CONV1_CHANNELS + i / 9;
    case RL_FC1_W: {
      uint32_t row = i / RL_FC1_INPUTS, channel = i % RL_FC1_INPUTS / RL_POOLED2_PIXELS, pixel = i % RL_POOLED2_PIXELS;
      return base + row * RL_FC1_INPUTS + pixel * RL_CONV2_CHANNELS + channel;
    }
    default: return parameter;
  }
}

/* Sets OpenBLAS to one thread, because each product runs on one of the engine's threads. It is set again at the start of each
 * epoch, because the setting is global and the measurement of the sgemm rate changes it. */
void rl_layers_on_start(rl_cpu_train *train) {
  (void)train;
  openblas_set_num_threads(1);
}

void rl_layers_on_weights_changed(rl_cpu_train *train) {
  rl_layers *layers = (rl_layers *)train;
  if (train->fp16) layers->simd->to_half(RL_PARAMETERS, train->weights, layers->fp16_weights);
}

bool rl_layers_all_finite(rl_cpu_train *train) { return ((rl_layers *)train)->simd->all_finite(RL_PARAMETERS, train->gradients); }

typedef struct adam_context {
  rl_layers *layers;
  float rate, scale, bias_correction_m, bias_correction_v;
} adam_context;

/* Task of rl_layers_adam: updates one part of the parameters. */
static void adam_part(void *context, uint32_t part, uint32_t thread) {
  (void)thread;
  const adam_context *shared = context;
  rl_cpu_train *train = &shared->layers->train;
  size_t first = (size_t)RL_PARAMETERS * part / RL_BATCH_CHUNKS,
         count = (size_t)RL_PARAMETERS * (part + 1) / RL_BATCH_CHUNKS - first;
  shared->layers->simd->adam(count, train->gradients + first, shared->scale, shared->rate, shared->bias_correction_m,
                             shared->bias_correction_v, train->weights + first, train->first_moment + first,
                             train->second_moment + first);
  if (train->fp16) shared->layers->simd->to_half(count, train->weights + first, shared->layers->fp16_weights + first);
}

void rl_layers_adam(rl_cpu_train *train, uint64_t step, double rate, float scale) {
  adam_context shared = {(rl_layers *)train, (float)rate, scale, (float)(1 - pow(0.9, (double)step)),
                         (float)(1 - pow(0.999, (double)step))};
  rl_thread_pool_run(train->thread_pool, RL_BATCH_CHUNKS, adam_part, &shared);
}

void rl_layers_read_planes(const rl_layers *layers, rl_values values, const uint8_t *argmax, uint32_t n, uint32_t pixels,
                           uint32_t channels, double *out) {
  for (size_t i = 0; i < (size_t)n * pixels * channels; i++) {
    size_t image = i / (pixels * channels), pixel = i / channels % pixels, channel = i % channels;
    float buffer;
    out[(image * channels + channel) * pixels + pixel] =
        argmax != NULL ? argmax[i] : *rl_values_as_floats(layers, values, i, 1, &buffer);
  }
}

bool rl_layers_read_value(rl_cpu_train *train, rl_cpu_value value, uint32_t n, double *out) {
  if (value == RL_VALUE_POOLED1_GRADIENT) return false;
  const rl_layers *layers = (const rl_layers *)train;
  const struct {
    rl_values values;
    const uint8_t *argmax;
    uint32_t pixels, channels;
  } planes[] = {[RL_VALUE_POOLED1] = {layers->pooled1, NULL, RL_POOLED1_PIXELS, RL_CONV1_CHANNELS},
                [RL_VALUE_ARGMAX1] = {{NULL}, layers->argmax1, RL_POOLED1_PIXELS, RL_CONV1_CHANNELS},
                [RL_VALUE_POOLED2] = {layers->pooled2, NULL, RL_POOLED2_PIXELS, RL_CONV2_CHANNELS},
                [RL_VALUE_ARGMAX2] = {{NULL}, layers->argmax2, RL_POOLED2_PIXELS, RL_CONV2_CHANNELS},
                [RL_VALUE_HIDDEN] = {layers->hidden, NULL, 1, RL_FC1_OUTPUTS},
                [RL_VALUE_FC1_PRODUCT_GRADIENT] = {layers->fc1_product_gradient, NULL, 1, RL_FC1_OUTPUTS},
                [RL_VALUE_POOLED2_GRADIENT] = {layers->pooled2_gradient, NULL, RL_POOLED2_PIXELS, RL_CONV2_CHANNELS}};
  rl_layers_read_planes(layers, planes[value].values, planes[value].argmax, n, planes[value].pixels, planes[value].channels, out);
  return true;
}

typedef struct allocation {
  void *pointer; /* address of the pointer to set */
  rl_memory_purpose purpose;
  size_t bytes;
} allocation;

static int allocate(rl_cpu_train *train, size_t count, const allocation *allocations, rl_error *err) {
  for (size_t i = 0; i < count; i++)
    if (rl_cpu_allocate(train, allocations[i].purpose, allocations[i].bytes, allocations[i].pointer, err) < 0) return -1;
  return 0;
}

int rl_layers_prepare(rl_cpu_train *train, rl_error *err) {
  rl_layers *layers = (rl_layers *)train;
  size_t n = (size_t)train->instance.params.batch_size, value_bytes = train->fp16 ? sizeof(uint16_t) : sizeof(float);
  const rl_simd *usable[RL_SIMD_TABLES];
  rl_simd_list_usable(usable);
  layers->simd = usable[0];
  const allocation allocations[] = {
      {&layers->pooled1.data, RL_MEMORY_ACTIVATIONS, n * RL_POOLED1_FLOATS * value_bytes},
      {&layers->pooled2.data, RL_MEMORY_ACTIVATIONS, n * RL_FC1_INPUTS * value_bytes},
      {&layers->hidden.data, RL_MEMORY_ACTIVATIONS, n * RL_FC1_OUTPUTS * value_bytes},
      {&layers->fc1_product_gradient.data, RL_MEMORY_ACTIVATIONS, n * RL_FC1_OUTPUTS * value_bytes},
      {&layers->pooled2_gradient.data, RL_MEMORY_ACTIVATIONS, n * RL_FC1_INPUTS * value_bytes},
      {&layers->argmax1, RL_MEMORY_ACTIVATIONS, n * RL_POOLED1_FLOATS},
      {&layers->argmax2, RL_MEMORY_ACTIVATIONS, n * RL_FC1_INPUTS},
      {&layers->chunk_sums, RL_MEMORY_WORKSPACE, sizeof(float) * RL_BATCH_CHUNKS * RL_CONV_GRADIENTS}};
  if (allocate(train, sizeof allocations / sizeof *allocations, allocations, err) < 0) return -1;
  if (!train->fp16) {
    layers->pooled2_floats = layers->pooled2.data;
    layers->pooled2_gradient_floats = layers->pooled2_gradient.data;
    layers->hidden_floats = layers->hidden.data;
    layers->fc1_product_gradient_floats = layers->fc1_product_gradient.data;
    return 0;
  }
  const allocation fp16_allocations[] = {
      {&layers->fp16_weights, RL_MEMORY_WEIGHTS, sizeof(uint16_t) * RL_PARAMETERS},
      {&layers->pooled2_floats, RL_MEMORY_WORKSPACE, sizeof(float) * n * RL_FC1_INPUTS},
      {&layers->pooled2_gradient_floats, RL_MEMORY_WORKSPACE, sizeof(float) * n * RL_FC1_INPUTS},
      {&layers->hidden_floats, RL_MEMORY_WORKSPACE, sizeof(float) * n * RL_FC1_OUTPUTS},
      {&layers->fc1_product_gradient_floats, RL_MEMORY_WORKSPACE, sizeof(float) * n * RL_FC1_OUTPUTS},
      {&layers->fc1_weights, RL_MEMORY_WORKSPACE,
       sizeof(float) * FC1_TASK_WEIGHTS * rl_thread_pool_thread_count(train->thread_pool)}};
  return allocate(train, sizeof fp16_allocations / sizeof *fp16_allocations, fp16_allocations, err);
}
