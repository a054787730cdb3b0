/* The engine of posted kernels: compiles or loads the kernel, fills the buffers and launches. If the kernel faults, its error is
 * sticky in the CUDA context: the pass fails, and the worker process exits. If the kernel does not end, the daemon kills the
 * worker process. */
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cuda_check.h"
#include "source/argument_values.h"
#include "source/fill.h"
#include "source/l2_priority.h"
#include "source/reference.h"
#include "source/kernel.h"
#include "source/launch_check.h"
#include "source/source_cache.h"

enum { OPEN_MEASUREMENT_COUNT = 8, PRINTF_FIFO_BYTES = 64 << 10 };

typedef struct instance {
  rl_instance base;
  rl_source source;
  rl_source_params params;
  rl_source_kernel kernel;
  void *allocations[RL_SOURCE_ARGUMENTS_MAX]; /* each has a buffer between two guard zones */
  void *buffers[RL_SOURCE_ARGUMENTS_MAX];
  /* Copies of the buffers, made by the last save; opening the instance saves once. NULL: a buffer with access "out", or a
   * scalar. */
  void *saved_buffers[RL_SOURCE_ARGUMENTS_MAX];
  rl_source_argument_values values;
  rl_launch_check *launch_check;
  rl_source_reference *reference; /* NULL: the request has none */
  bool has_fresh_inputs;  /* each launch gets other random inputs; if there is a reference, true from check() until reset() */
  uint64_t launch_number; /* number of launches with fresh inputs so far */
  rl_launch launch, restore_launch, check_launch;
  rl_sequence sequence;
  rl_open_measurement open_measurements[OPEN_MEASUREMENT_COUNT];
} instance;

/* --- buffers ----------------------------------------------------------------------------------------------------------- */

static size_t buffer_bytes(const rl_source_argument *argument) {
  return (size_t)argument->count * rl_source_type_size(argument->type);
}

/* Buffers with access "out" are not filled, because they are overwritten before each launch. */
static int reset(rl_instance *base, rl_error *err) {
  instance *self = (instance *)base;
  rl_device *device = base->device;
  self->has_fresh_inputs = false;
  for (int i = 0; i < self->source.argument_count; i++) {
    const rl_source_argument *argument = &self->source.arguments[i];
    if (argument->kind != RL_SOURCE_BUFFER || argument->access == RL_SOURCE_OUT) continue;
    int rc = argument->initial_contents
                 ? device->ops->upload(device, self->buffers[i], argument->initial_contents, buffer_bytes(argument), err)
                 : rl_source_fill(argument, i, 0, self->buffers[i], device->stream, err);
    if (rc < 0) return -1;
  }
  return rl_cuda_check(cudaStreamSynchronize((cudaStream_t)device->stream), "filling the buffers", err);
}

/* Copies the contents of the buffers to saved_buffers. */
static int copy_to_saved(instance *self, rl_error *err) {
  const cudaStream_t stream = (cudaStream_t)self->base.device->stream;
  for (int i = 0; i < self->source.argument_count; i++) {
    if (!self->saved_buffers[i]) continue;
    cudaError_t status = cudaMemcpyAsync(self->saved_buffers[i], self->buffers[i], buffer_bytes(&self->source.arguments[i]),
                                         cudaMemcpyDeviceToDevice, stream);
    if (rl_cuda_check(status, "saving the buffers", err) < 0) return -1;
  }
  return rl_cuda_check(cudaStreamSynchronize(stream), "saving the buffers", err);
}

static int save(rl_instance *base, rl_error *err) {
  instance *self = (instance *)base;
  rl_device *device = base->device;
  for (int i = 0; i < self->source.argument_count; i++)
    if (self->buffers[i] && !self->saved_buffers[i] && self->source.arguments[i].access != RL_SOURCE_OUT &&
        device->ops->allocate(device, RL_MEMORY_WORKSPACE, buffer_bytes(&self->source.arguments[i]), &self->saved_buffers[i],
                              err) < 0)
      return -1;
  return copy_to_saved(self, err);
}

/* Restores the module's variables and fills the buffers. */
static int enqueue_restore(void *arg, rl_stream stream, rl_error *err) {
  instance *self = (instance *)arg;
  if (self->has_fresh_inputs) self->launch_number++;
  return rl_module_variables_enqueue_restore(self->kernel.variables, stream, err) < 0
             ? -1
             : rl_source_fill_buffers(&self->source, self->has_fresh_inputs ? self->launch_number : 0, self->saved_buffers,
                                      self->buffers, stream, err);
}

static int restore(rl_instance *base, rl_error *err) {
  if (enqueue_restore(base, base->device->stream, err) < 0) return -1;
  return rl_cuda_check(cudaStreamSynchronize((cudaStream_t)base->device->stream), "restoring the buffers", err);
}

/* --- the check --------------------------------------------------------------------------------------------------------- */

static int run_once(instance *self, rl_error *err) {
  rl_device *device = self->base.device;
  rl_sequence once = self->sequence;
  rl_sequence_list sequence_list = {.name = "check", .sequences = &once, .sequence_count = 1};
  rl_elapsed elapsed;
  once.repeat = 1;
  return device->ops->run_eager(device, &sequence_list, NULL, &elapsed, err);
}

/* Returns ‖result − expected‖ / ‖expected‖; ‖result‖ when expected is zero. */
static double relative_error(const rl_source_argument *argument, const void *result, const void *expected) {
  double squared_error = 0, squared_norm = 0;
  for (int64_t i = 0; i < argument->count; i++) {
    const double value = rl_source_element_to_double(argument->type, expected, (size_t)i),
                 difference = rl_source_element_to_double(argument->type, result, (size_t)i) - value;
    squared_error += difference * difference;
    squared_norm += value * value;
  }
  return squared_norm > 0 ? sqrt(squared_error / squared_norm) : sqrt(squared_error);
}

/* Computes the expected contents with the reference, from the inputs that the request describes. */
static int run_reference(instance *self, void *expected, size_t bytes, rl_error *err) {
  rl_device *device = self->base.device;
  void *const *buffers = rl_source_reference_buffers(self->reference);
  if (rl_source_fill_buffers(&self->source, 0, self->saved_buffers, buffers, device->stream, err) < 0 ||
      rl_source_reference_enqueue(self->reference, device->stream, err) < 0 ||
      rl_cuda_check(cudaStreamSynchronize((cudaStream_t)device->stream), "running the reference", err) < 0)
    return rl_wrap(err, "the reference");
  return device->ops->download(device, expected, buffers[self->source.expected_argument], bytes, err);
}

/* Runs the kernel once and compares the result with the expected contents. contents: memory for the result and for the
 * expected contents, `bytes` bytes each. */
static int compare_launch(instance *self, unsigned char *contents, size_t bytes, rl_check *check, rl_error *err) {
  const rl_source *source = &self->source;
  const int64_t index = source->expected_argument;
  const void *expected = source->has_reference ? contents + bytes : source->expected;
  rl_device *device = self->base.device;
  if (run_once(self, err) < 0 || device->ops->download(device, contents, self->buffers[index], bytes, err) < 0 ||
      (source->has_reference && run_reference(self, contents + bytes, bytes, err) < 0))
    return -1;
  *check = (rl_check){.relative_error = relative_error(&source->arguments[index], contents, expected),
                      .tolerance = source->tolerance,
                      .checked_ratio = 1};
  return 0;
}

static int check(rl_instance *base, rl_check *check, rl_error *err) {
  instance *self = (instance *)base;
  const size_t bytes = buffer_bytes(&self->source.arguments[self->source.expected_argument]);
  unsigned char *contents = (unsigned char *)malloc(2 * bytes);
  if (!contents) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the check");
  int rc = compare_launch(self, contents, bytes, check, err);
  free(contents);
  self->has_fresh_inputs = rc == 0 && self->reference != NULL;
  return rc;
}

/* Runs the reference on the inputs of the launch that was enqueued last, and compares the results. */
static int enqueue_reference(instance *self, rl_stream stream, rl_error *err) {
  void *const *buffers = rl_source_reference_buffers(self->reference);
  return rl_source_fill_buffers(&self->source, self->has_fresh_inputs ? self->launch_number : 0, self->saved_buffers, buffers,
                                stream, err) < 0 ||
                 rl_launch_check_enqueue_inputs(self->launch_check, buffers, stream, err) < 0 ||
                 rl_source_reference_enqueue(self->reference, stream, err) < 0 ||
                 rl_launch_check_enqueue_result(self->launch_check, buffers, stream, err) < 0
             ? -1
             : 0;
}

static int enqueue_launch_check(void *arg, rl_stream stream, rl_error *err) {
  instance *self = (instance *)arg;
  return rl_launch_check_enqueue(self->launch_check, stream, err) < 0 ||
                 (self->reference && enqueue_reference(self, stream, err) < 0) ||
                 rl_source_reset_l2_priority(&self->source, self->buffers, stream, err) < 0
             ? -1
             : 0;
}

static int read_launch_checks(rl_instance *base, uint64_t *count, rl_error *err) {
  return rl_launch_check_read(((instance *)base)->launch_check, base->device->stream, count, err);
}

/* --- launching --------------------------------------------------------------------------------------------------------- */

static int enqueue(void *arg, rl_stream stream, rl_error *err) {
  const instance *self = (const instance *)arg;
  return rl_source_kernel_launch(&self->kernel, self->values.pointers, stream, err);
}

static int read_results(rl_instance *base, rl_iteration_results *results, rl_error *err) {
  (void)base, (void)err;
  *results = (rl_iteration_results){NAN, NAN, NAN, NAN, NAN, NAN};
  return 0;
}

static void close_instance(rl_instance *base) {
  instance *self = (instance *)base;
  for (int i = 0; i < RL_SOURCE_ARGUMENTS_MAX; i++) {
    base->device->ops->release(base->device, self->allocations[i]);
    base->device->ops->release(base->device, self->saved_buffers[i]);
  }
  rl_launch_check_close(self->launch_check);
  rl_source_reference_close(self->reference);
  rl_source_kernel_close(&self->kernel);
  rl_source_clear(&self->source);
  free(self);
}

#define COMMON_OPS .reset = reset, .read_results = read_results, .save = save, .restore = restore, .close = close_instance
static const rl_instance_ops operations_with_reference = {COMMON_OPS, .check = check, .read_launch_checks = read_launch_checks};
static const rl_instance_ops operations_without_reference = {COMMON_OPS, .read_launch_checks = read_launch_checks};

/* --- opening ----------------------------------------------------------------------------------------------------------- */

static void set_open_measurements(instance *self) {
  const bool is_binary = self->source.binary != NULL;
  const char *not_compiled_reason = "a binary was posted",
             *spills_unknown_reason = is_binary ? not_compiled_reason : "the compiler did not report it";
  const rl_nvrtc_result *compiled = &self->kernel.compiled;
  const cudaFuncAttributes *attributes = &self->kernel.attributes;
  const rl_open_measurement measured[OPEN_MEASUREMENT_COUNT] = {
      {"registers_per_thread", (double)attributes->numRegs, NULL},
      {"static_shared_bytes", (double)attributes->sharedSizeBytes, NULL},
      {"local_bytes_per_thread", (double)attributes->localSizeBytes, NULL},
      {"spill_store_bytes", is_binary ? NAN : compiled->spill_store_bytes, spills_unknown_reason},
      {"spill_load_bytes", is_binary ? NAN : compiled->spill_load_bytes, spills_unknown_reason},
      {"compile_ms", is_binary ? NAN : compiled->compile_ms, not_compiled_reason},
      {"compile_cached", is_binary ? NAN : compiled->cached, not_compiled_reason},
      {"restored_variable_bytes", rl_module_variables_restored_bytes(self->kernel.variables), NULL}};
  memcpy(self->open_measurements, measured, sizeof measured);
  self->base.open_measurements = self->open_measurements;
  self->base.open_measurement_count = OPEN_MEASUREMENT_COUNT;
}

static int allocate_buffer(instance *self, int index, rl_error *err) {
  rl_device *device = self->base.device;
  const size_t bytes = buffer_bytes(&self->source.arguments[index]) + 2 * RL_SOURCE_GUARD_BYTES;
  if (device->ops->allocate(device, RL_MEMORY_DATASET, bytes, &self->allocations[index], err) < 0) return -1;
  self->buffers[index] = (char *)self->allocations[index] + RL_SOURCE_GUARD_BYTES;
  return 0;
}

static int allocate_arguments(instance *self, rl_error *err) {
  for (int i = 0; i < self->source.argument_count; i++) {
    const rl_source_argument *argument = &self->source.arguments[i];
    if (argument->kind == RL_SOURCE_BUFFER && allocate_buffer(self, i, err) < 0) return -1;
  }
  if (rl_source_argument_values_set(&self->source, self->buffers, &self->values, err) < 0 || reset(&self->base, err) < 0 ||
      save(&self->base, err) < 0)
    return -1;
  return rl_launch_check_open(&self->source, self->buffers, self->base.device->stream, &self->launch_check, err);
}

static int prepare(instance *self, rl_error *err) {
  if (rl_source_cache_get(self->params.source_sha256, &self->source, err) < 0 ||
      rl_source_kernel_open(self->base.device, &self->source, (int)self->params.variant_index, &self->kernel, err) < 0 ||
      allocate_arguments(self, err) < 0 ||
      (self->source.has_reference && rl_source_reference_open(self->base.device, &self->source, &self->reference, err) < 0))
    return -1;
  self->base.ops = self->source.expected_argument >= 0 ? &operations_with_reference : &operations_without_reference;
  set_open_measurements(self);
  return 0;
}

static int open_engine(rl_device *device, const void *params, rl_instance **opened, rl_error *err) {
  instance *self = (instance *)calloc(1, sizeof *self);
  if (!self) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a kernel");
  cudaDeviceSetLimit(cudaLimitPrintfFifoSize, PRINTF_FIFO_BYTES); /* printf output between two synchronisations */
  (void)cudaGetLastError();
  self->params = *(const rl_source_params *)params;
  self->base.ops = &operations_without_reference;
  self->base.device = device;
  self->base.deterministic_note = "posted code may be nondeterministic";
  /* launch.name points to source.request.entry, an array of this instance, which prepare() fills later. */
  self->launch = (rl_launch){.name = self->source.request.entry, .nvtx_range = "kernel", .enqueue = enqueue, .arg = self};
  self->restore_launch = (rl_launch){.name = "restore", .nvtx_range = "data", .enqueue = enqueue_restore, .arg = self};
  self->check_launch = (rl_launch){.name = "check", .nvtx_range = "data", .enqueue = enqueue_launch_check, .arg = self};
  self->sequence = (rl_sequence){.name = "launch",
                                 .launches = &self->launch,
                                 .launch_count = 1,
                                 .repeat = (uint64_t)self->params.samples,
                                 .restore_launch = &self->restore_launch,
                                 .check_launch = &self->check_launch};
  self->base.iteration = (rl_sequence_list){.name = "kernel", .sequences = &self->sequence, .sequence_count = 1};
  if (prepare(self, err) < 0) {
    close_instance(&self->base);
    return -1;
  }
  *opened = &self->base;
  return 0;
}

static const rl_engine_description description = {
    .name = "nvrtc", .workload = "source", .device = RL_DEVICE_CUDA, .summary = "a posted kernel"};

extern "C" {
extern const rl_engine rl_engine_source;
const rl_engine rl_engine_source = {.description = &description, .open = open_engine};
}
