#include "train/layers.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

enum {
  FC1_TASK_OUTPUTS = 32,               /* a task of fc1's forward pass computes these outputs of every image */
  FC1_TASK_INPUTS = RL_FC1_INPUTS / 8, /* a task of fc1's backward pass computes the gradients for these inputs */
  FC1_TASK_WEIGHTS = FC1_TASK_OUTPUTS * RL_FC1_INPUTS
};
_Static_assert(FC1_TASK_WEIGHTS >= RL_FC1_OUTPUTS * FC1_TASK_INPUTS, "a task uses at most FC1_TASK_WEIGHTS weights");

static float *gradient_tensor(rl_layers *l, rl_tensor tensor) { return l->train.gradients + rl_tensor_offset(tensor); }

float *rl_values_as_floats(const rl_layers *l, rl_values values, size_t offset, size_t count, float *buffer) {
  if (!l->train.fp16) return (float *)values.data + offset;
  l->simd->from_half(count, (const uint16_t *)values.data + offset, buffer);
  return buffer;
}

float *rl_values_float_buffer(const rl_layers *l, rl_values values, size_t offset, float *buffer) {
  return l->train.fp16 ? buffer : (float *)values.data + offset;
}

void rl_store_values(const rl_layers *l, rl_values values, size_t offset, size_t count, const float *computed) {
  if (l->train.fp16) l->simd->to_half(count, computed, (uint16_t *)values.data + offset);
}

const float *rl_weights_as_floats(const rl_layers *l, size_t offset, size_t count, float *buffer) {
  if (!l->train.fp16) return l->train.weights + offset;
  l->simd->from_half(count, l->fp16_weights + offset, buffer);
  return buffer;
}

/* --- batch chunks ------------------------------------------------------------------------------------------------------ */

typedef struct task_context {
  rl_layers *layers;
  uint32_t n; /* images in the batch */
  rl_batch_chunk_task *chunk_task;
} task_context;

static void run_tasks(rl_layers *l, uint32_t n, uint32_t tasks, rl_task *task) {
  task_context shared = {.layers = l, .n = n};
  rl_thread_pool_run(l->train.thread_pool, tasks, task, &shared);
}

static uint32_t chunk_start(uint32_t n, uint32_t chunk) { return (uint32_t)((uint64_t)n * chunk / RL_BATCH_CHUNKS); }

static void run_chunk(void *context, uint32_t number, uint32_t thread) {
  const task_context *shared = context;
  rl_layers *l = shared->layers;
  rl_batch_chunk chunk = {chunk_start(shared->n, number), chunk_start(shared->n, number + 1),
                          l->chunk_sums + (size_t)number * RL_CONV_GRADIENTS};
  shared->chunk_task(l, chunk, thread);
}

void rl_run_batch_chunks(rl_layers *l, uint32_t n, rl_batch_chunk_task *task) {
  task_context shared = {l, n, task};
  rl_thread_pool_run(l->train.thread_pool, RL_BATCH_CHUNKS, run_chunk, &shared);
}

static void sum_chunks(void *context, uint32_t part, uint32_t thread) {
  (void)thread;
  rl_layers *l = ((const task_context *)context)->layers;
  size_t first = (size_t)RL_CONV_GRADIENTS * part / RL_BATCH_CHUNKS,
         count = (size_t)RL_CONV_GRADIENTS * (part + 1) / RL_BATCH_CHUNKS - first;
  float *sum = l->train.gradients + first;
  memcpy(sum, l->chunk_sums + first, sizeof *sum * count);
  for (size_t chunk = 1; chunk < RL_BATCH_CHUNKS; chunk++)
    l->simd->add(count, l->chunk_sums + chunk * RL_CONV_GRADIENTS + first, sum);
}

void rl_sum_batch_chunks(rl_layers *l) { run_tasks(l, 0, RL_BATCH_CHUNKS, sum_chunks); }

/* --- the linear layers ------------------------------------------------------------------------------------------------- */

/* Returns the thread's buffer for fc1's weights as floats; fp32: NULL, as none is needed. */
static float *fc1_weight_buffer(const rl_layers *l, uint32_t thread) {
  return l->train.fp16 ? l->fc1_weights + (size_t)thread * FC1_TASK_WEIGHTS : NULL;
}

static void fc1_forward_rows(void *context, uint32_t task, uint32_t thread) {
  const task_context *shared = context;
  rl_layers *l = shared->layers;
  const float *w = rl_weights_as_floats(l, rl_tensor_offset(RL_FC1_W) + (size_t)task * FC1_TASK_OUTPUTS * RL_FC1_INPUTS,
                                        FC1_TASK_WEIGHTS, fc1_weight_buffer(l, thread));
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)shared->n, FC1_TASK_OUTPUTS, RL_FC1_INPUTS, 1, l->pooled2_floats,
              RL_FC1_INPUTS, w, RL_FC1_INPUTS, 0, l->hidden_floats + task * FC1_TASK_OUTPUTS, RL_FC1_OUTPUTS);
}

void rl_fc1_forward(rl_cpu_train *train, uint32_t n) {
  rl_layers *l = (rl_layers *)train;
  float buffer[RL_FC1_OUTPUTS];
  rl_values_as_floats(l, l->pooled2, 0, (size_t)n * RL_FC1_INPUTS, l->pooled2_floats);
  run_tasks(l, n, RL_FC1_OUTPUTS / FC1_TASK_OUTPUTS, fc1_forward_rows);
  l->simd->bias_relu(n, RL_FC1_OUTPUTS, rl_weights_as_floats(l, rl_tensor_offset(RL_FC1_B), RL_FC1_OUTPUTS, buffer),
                     l->hidden_floats);
  rl_store_values(l, l->hidden, 0, (size_t)n * RL_FC1_OUTPUTS, l->hidden_floats);
}

static void round_to_half(const rl_layers *l, size_t count, float *values) {
  uint16_t halves[256];
  for (size_t i = 0; l->train.fp16 && i < count; i += 256) {
    size_t length = count - i < 256 ? count - i : 256;
    l->simd->to_half(length, values + i, halves);
    l->simd->from_half(length, halves, values + i);
  }
}

void rl_fc2_forward(rl_cpu_train *train, uint32_t n) {
  rl_layers *l = (rl_layers *)train;
  float buffer[RL_CLASSES * RL_FC1_OUTPUTS], bias_buffer[RL_CLASSES];
  rl_values_as_floats(l, l->hidden, 0, (size_t)n * RL_FC1_OUTPUTS, l->hidden_floats);
  const float *w = rl_weights_as_floats(l, rl_tensor_offset(RL_FC2_W), RL_CLASSES * RL_FC1_OUTPUTS, buffer);
  const float *bias = rl_weights_as_floats(l, rl_tensor_offset(RL_FC2_B), RL_CLASSES, bias_buffer);
  for (uint32_t i = 0; i < n; i++) memcpy(train->logits + i * RL_CLASSES, bias, sizeof(float) * RL_CLASSES);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, RL_CLASSES, RL_FC1_OUTPUTS, 1, l->hidden_floats, RL_FC1_OUTPUTS, w,
              RL_FC1_OUTPUTS, 1, train->logits, RL_CLASSES);
  round_to_half(l, (size_t)n * RL_CLASSES, train->logits);
}

static void sum_rows(const rl_layers *l, uint32_t n, uint32_t count, const float *rows, float *sum) {
  memset(sum, 0, sizeof *sum * count);
  for (uint32_t i = 0; i < n; i++) l->simd->add(count, rows + (size_t)i * count, sum);
}

void rl_fc2_backward(rl_cpu_train *train, uint32_t n) {
  rl_layers *l = (rl_layers *)train;
  float buffer[RL_CLASSES * RL_FC1_OUTPUTS];
  const float *w = rl_weights_as_floats(l, rl_tensor_offset(RL_FC2_W), RL_CLASSES * RL_FC1_OUTPUTS, buffer);
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, RL_CLASSES, RL_FC1_OUTPUTS, (int)n, 1, train->d_logits, RL_CLASSES,
              l->hidden_floats, RL_FC1_OUTPUTS, 0, gradient_tensor(l, RL_FC2_W), RL_FC1_OUTPUTS);
  sum_rows(l, n, RL_CLASSES, train->d_logits, gradient_tensor(l, RL_FC2_B));
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, RL_FC1_OUTPUTS, RL_CLASSES, 1, train->d_logits, RL_CLASSES, w,
              RL_FC1_OUTPUTS, 0, l->d_fc1_floats, RL_FC1_OUTPUTS);
  for (size_t i = 0; i < (size_t)n * RL_FC1_OUTPUTS; i++)
    if (l->hidden_floats[i] <= 0) l->d_fc1_floats[i] = 0;
  rl_store_values(l, l->d_fc1, 0, (size_t)n * RL_FC1_OUTPUTS, l->d_fc1_floats);
}

static void fc1_backward_columns(void *context, uint32_t task, uint32_t thread) {
  const task_context *shared = context;
  rl_layers *l = shared->layers;
  size_t first = (size_t)task * FC1_TASK_INPUTS;
  const float *w = l->train.weights + rl_tensor_offset(RL_FC1_W) + first;
  int stride = RL_FC1_INPUTS;
  if (l->train.fp16) {
    float *task_weights = fc1_weight_buffer(l, thread);
    for (int o = 0; o < RL_FC1_OUTPUTS; o++)
      l->simd->from_half(FC1_TASK_INPUTS, l->fp16_weights + rl_tensor_offset(RL_FC1_W) + (size_t)o * RL_FC1_INPUTS + first,
                         task_weights + o * FC1_TASK_INPUTS);
    w = task_weights;
    stride = FC1_TASK_INPUTS;
  }
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, RL_FC1_OUTPUTS, FC1_TASK_INPUTS, (int)shared->n, 1, l->d_fc1_floats,
              RL_FC1_OUTPUTS, l->pooled2_floats + first, RL_FC1_INPUTS, 0, gradient_tensor(l, RL_FC1_W) + first, RL_FC1_INPUTS);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)shared->n, FC1_TASK_INPUTS, RL_FC1_OUTPUTS, 1, l->d_fc1_floats,
              RL_FC1_OUTPUTS, w, stride, 0, l->d_pooled2_floats + first, RL_FC1_INPUTS);
}

void rl_fc1_backward(rl_cpu_train *train, uint32_t n) {
  rl_layers *l = (rl_layers *)train;
  rl_values_as_floats(l, l->d_fc1, 0, (size_t)n * RL_FC1_OUTPUTS, l->d_fc1_floats);
  sum_rows(l, n, RL_FC1_OUTPUTS, l->d_fc1_floats, gradient_tensor(l, RL_FC1_B));
  run_tasks(l, n, RL_FC1_INPUTS / FC1_TASK_INPUTS, fc1_backward_columns);
  rl_store_values(l, l->d_pooled2, 0, (size_t)n * RL_FC1_INPUTS, l->d_pooled2_floats);
}

/* --- parameters -------------------------------------------------------------------------------------------------------- */

uint32_t rl_layers_parameter_index(uint32_t parameter) {
  uint32_t tensor = 0;
  while (parameter >= rl_tensor_offsets[tensor + 1]) tensor++;
  uint32_t i = parameter - rl_tensor_offsets[tensor], base = rl_tensor_offsets[tensor];
  switch (tensor) {
    case RL_CONV1_W: return base + i % 9 * RL_C1 + i / 9;
    case RL_FC1_W: {
      uint32_t row = i / RL_FC1_INPUTS, channel = i % RL_FC1_INPUTS / RL_POOLED2_PIXELS, pixel = i % RL_POOLED2_PIXELS;
      return base + row * RL_FC1_INPUTS + pixel * RL_C2 + channel;
    }
    default: return parameter;
  }
}

/* OpenBLAS must not start threads: each product runs on one of the engine's threads. The setting is global, and the measurement
 * of the sgemm rate changes it, so this sets it again. */
void rl_layers_on_start(rl_cpu_train *train) {
  (void)train;
  openblas_set_num_threads(1);
}

void rl_layers_on_weights_changed(rl_cpu_train *train) {
  rl_layers *l = (rl_layers *)train;
  if (train->fp16) l->simd->to_half(RL_PARAMETERS, train->weights, l->fp16_weights);
}

bool rl_layers_all_finite(rl_cpu_train *train) { return ((rl_layers *)train)->simd->all_finite(RL_PARAMETERS, train->gradients); }

typedef struct adam_context {
  rl_layers *layers;
  float rate, scale, bias_correction_m, bias_correction_v;
} adam_context;

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

void rl_layers_read_planes(const rl_layers *l, rl_values values, const uint8_t *argmax, uint32_t n, uint32_t pixels,
                           uint32_t channels, double *out) {
  for (size_t i = 0; i < (size_t)n * pixels * channels; i++) {
    size_t image = i / (pixels * channels), pixel = i / channels % pixels, channel = i % channels;
    float buffer;
    out[(image * channels + channel) * pixels + pixel] =
        argmax != NULL ? argmax[i] : *rl_values_as_floats(l, values, i, 1, &buffer);
  }
}

bool rl_layers_read_value(rl_cpu_train *train, rl_cpu_value value, uint32_t n, double *out) {
  if (value == RL_VALUE_D_POOLED1) return false;
  const rl_layers *l = (const rl_layers *)train;
  const struct {
    rl_values values;
    const uint8_t *argmax;
    uint32_t pixels, channels;
  } planes[] = {[RL_VALUE_POOLED1] = {l->pooled1, NULL, RL_POOLED1_PIXELS, RL_C1},
                [RL_VALUE_ARGMAX1] = {{NULL}, l->argmax1, RL_POOLED1_PIXELS, RL_C1},
                [RL_VALUE_POOLED2] = {l->pooled2, NULL, RL_POOLED2_PIXELS, RL_C2},
                [RL_VALUE_ARGMAX2] = {{NULL}, l->argmax2, RL_POOLED2_PIXELS, RL_C2},
                [RL_VALUE_HIDDEN] = {l->hidden, NULL, 1, RL_FC1_OUTPUTS},
                [RL_VALUE_D_FC1] = {l->d_fc1, NULL, 1, RL_FC1_OUTPUTS},
                [RL_VALUE_D_POOLED2] = {l->d_pooled2, NULL, RL_POOLED2_PIXELS, RL_C2}};
  rl_layers_read_planes(l, planes[value].values, planes[value].argmax, n, planes[value].pixels, planes[value].channels, out);
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
  rl_layers *l = (rl_layers *)train;
  size_t n = (size_t)train->instance.params.batch_size, value_bytes = train->fp16 ? sizeof(uint16_t) : sizeof(float);
  const rl_simd *usable[RL_SIMD_TABLES];
  rl_simd_usable(usable);
  l->simd = usable[0];
  const allocation allocations[] = {{&l->pooled1.data, RL_MEMORY_ACTIVATIONS, n * RL_POOLED1_FLOATS * value_bytes},
                                    {&l->pooled2.data, RL_MEMORY_ACTIVATIONS, n * RL_FC1_INPUTS * value_bytes},
                                    {&l->hidden.data, RL_MEMORY_ACTIVATIONS, n * RL_FC1_OUTPUTS * value_bytes},
                                    {&l->d_fc1.data, RL_MEMORY_ACTIVATIONS, n * RL_FC1_OUTPUTS * value_bytes},
                                    {&l->d_pooled2.data, RL_MEMORY_ACTIVATIONS, n * RL_FC1_INPUTS * value_bytes},
                                    {&l->argmax1, RL_MEMORY_ACTIVATIONS, n * RL_POOLED1_FLOATS},
                                    {&l->argmax2, RL_MEMORY_ACTIVATIONS, n * RL_FC1_INPUTS},
                                    {&l->chunk_sums, RL_MEMORY_WORKSPACE, sizeof(float) * RL_BATCH_CHUNKS * RL_CONV_GRADIENTS}};
  if (allocate(train, sizeof allocations / sizeof *allocations, allocations, err) < 0) return -1;
  if (!train->fp16) {
    l->pooled2_floats = l->pooled2.data;
    l->d_pooled2_floats = l->d_pooled2.data;
    l->hidden_floats = l->hidden.data;
    l->d_fc1_floats = l->d_fc1.data;
    return 0;
  }
  const allocation fp16_allocations[] = {
      {&l->fp16_weights, RL_MEMORY_WEIGHTS, sizeof(uint16_t) * RL_PARAMETERS},
      {&l->pooled2_floats, RL_MEMORY_WORKSPACE, sizeof(float) * n * RL_FC1_INPUTS},
      {&l->d_pooled2_floats, RL_MEMORY_WORKSPACE, sizeof(float) * n * RL_FC1_INPUTS},
      {&l->hidden_floats, RL_MEMORY_WORKSPACE, sizeof(float) * n * RL_FC1_OUTPUTS},
      {&l->d_fc1_floats, RL_MEMORY_WORKSPACE, sizeof(float) * n * RL_FC1_OUTPUTS},
      {&l->fc1_weights, RL_MEMORY_WORKSPACE, sizeof(float) * FC1_TASK_WEIGHTS * rl_thread_pool_thread_count(train->thread_pool)}};
  return allocate(train, sizeof fp16_allocations / sizeof *fp16_allocations, fp16_allocations, err);
}
