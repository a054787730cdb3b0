/* The engine "cpu" of every operator: the threads of a pool compute output segments (kernel.h). Elements of types in which the
 * CPU does not compute (fp16, bf16) are converted to float and back. Variant 0 computes one segment at a time. The other variants
 * that the CPU has compute a tile of several segments, so that the loops are long enough for the compiler to vectorise. An
 * operator with only one CPU variant computes tiles. */
#include "kernel/cpu.h"

#include <errno.h>
#include <stdlib.h>

#include "kernel/input_stager.h"
#include "kernel/parallel.h"

enum {
  TILE_ELEMENTS = 4096,    /* approximate output elements of a tile, which has at least one segment */
  CHUNK_ELEMENTS = 1 << 16 /* approximate output elements that a thread computes per task: at least one segment */
};

static bool is_computed_in_place(int dtype) { return dtype == RL_DTYPE_FP64 || dtype == RL_DTYPE_FP32 || dtype == RL_DTYPE_TF32; }

static const void *read_input(const rl_kernel_instance *self, uint32_t input, int64_t start, int64_t count, void *buffer) {
  const int dtype = self->params.dtype;
  const char *from = (const char *)self->in[input] + (size_t)start * rl_dtype_size(dtype);
  if (is_computed_in_place(dtype)) return from;
  rl_dtype_to_float(dtype, from, count, buffer);
  return buffer;
}

static void compute_tile(void *context, const void *const *in, int64_t first, int64_t count, void *buffer) {
  const rl_kernel_instance *self = context;
  const rl_kernel_operator *op = self->params.op;
  const int dtype = self->params.dtype;
  const int64_t segment_elements = rl_kernel_elements_per_output_segment(self);
  char *to = (char *)self->out + (size_t)(first * segment_elements) * rl_dtype_size(dtype);
  void *out = is_computed_in_place(dtype) ? to : buffer;
  if (dtype == RL_DTYPE_FP64) op->compute_double(&self->shape, (const double *const *)in, first, count, out);
  else op->compute_float(&self->shape, (const float *const *)in, first, count, out);
  if (out != to) rl_dtype_from_float(dtype, out, count * segment_elements, to);
}

static bool has_one_cpu_variant(const rl_kernel_operator *op) {
  for (int i = 1; op->variants[i] != NULL; i++)
    if (!(op->gpu_only_variants & 1u << i)) return false;
  return true;
}

static int compute_chunk(void *context, int64_t first, int64_t count, uint32_t thread, rl_error *err) {
  rl_kernel_instance *self = context;
  const bool one_by_one = self->variant == 0 && !has_one_cpu_variant(self->params.op);
  const int64_t step = one_by_one ? 1 : rl_kernel_output_segments_for_elements(self, TILE_ELEMENTS), end = first + count;
  for (int64_t segment = first; segment < end; segment += step) {
    const int64_t segments = segment + step < end ? step : end - segment;
    if (rl_input_stager_process(self->engine_state, segment, segments, thread, compute_tile, self, err) < 0) return -1;
  }
  return 0;
}

static int enqueue(void *arg, rl_stream stream, rl_error *err) {
  rl_kernel_instance *self = arg;
  (void)stream;
  if (rl_input_stager_read_full_inputs(self->engine_state, err) < 0) return -1;
  return rl_parallel_for(self->thread_pool, self->base.device, self->params.op->output_segment_count(&self->shape),
                         rl_kernel_output_segments_for_elements(self, CHUNK_ELEMENTS), compute_chunk, self, err);
}

static void close_stager(void *engine_state) {
  rl_input_stager_close(engine_state);
  free(engine_state);
}

int rl_kernel_cpu_supports(const void *params, rl_error *err) {
  const rl_kernel_params *request = params;
  return rl_kernel_supports(params, err) < 0 ? -1 : rl_kernel_device_check(request, RL_DEVICE_CPU, err);
}

static int open_stager(rl_kernel_instance *self, rl_error *err) {
  rl_input_stager *stager = calloc(1, sizeof *stager);
  if (stager == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a kernel");
  *stager = (rl_input_stager){.kernel = self,
                              .value_bytes = self->params.dtype == RL_DTYPE_FP64 ? sizeof(double) : sizeof(float),
                              .max_buffer_values = 4 * TILE_ELEMENTS,
                              .read_input = read_input};
  self->engine_state = stager;
  self->engine_close = close_stager;
  return rl_input_stager_open(stager, err);
}

int rl_kernel_cpu_open(rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  rl_kernel_instance *self;
  if (rl_kernel_open(device, params, enqueue, &self, err) < 0) return -1;
  if (open_stager(self, err) < 0) {
    self->base.ops->close(&self->base);
    return -1;
  }
  *instance = &self->base;
  return 0;
}

#define ENGINE(NAME)                                                                                                 \
  static const rl_engine_description description_of_##NAME = {.name = "cpu",                                         \
                                                              .workload = #NAME,                                     \
                                                              .device = RL_DEVICE_CPU,                               \
                                                              .summary = "output segments distributed over threads", \
                                                              .supports = rl_kernel_cpu_supports};                   \
  const rl_engine rl_kernel_cpu_##NAME = {.description = &description_of_##NAME, .open = rl_kernel_cpu_open};
RL_KERNEL_OPERATORS(ENGINE)
