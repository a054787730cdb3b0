/* Implements input_stager.h, which defines output segment, window, full input and value. */
#include "kernel/input_stager.h"

#include <errno.h>
#include <stdlib.h>

#include "kernel/parallel.h"

int64_t rl_kernel_elements_per_output_segment(const rl_kernel_instance *kernel) {
  const rl_kernel_operator *op = kernel->params.op;
  return op->output_elements(&kernel->shape) / op->output_segment_count(&kernel->shape);
}

int64_t rl_kernel_output_segments_for_elements(const rl_kernel_instance *kernel, int64_t elements) {
  const int64_t segment_elements = rl_kernel_elements_per_output_segment(kernel);
  return segment_elements < elements ? elements / segment_elements : 1;
}

typedef struct window {
  int64_t start, elements; /* index of the first element, number of elements */
} window;

/* Returns the window of output segments [first_segment, first_segment + segments). */
static window find_window(const rl_kernel_instance *kernel, uint32_t input, int64_t first_segment, int64_t segments) {
  window result;
  kernel->params.op->input_window(&kernel->shape, input, first_segment, segments, &result.start, &result.elements);
  return result;
}

/* --- full inputs ------------------------------------------------------------------------------------------------------- */

/* Returns whether every segment needs the whole input. Compares only the windows of the first and the last segment with the whole
 * input: that suffices, because neither the start nor the end of the windows decreases from one segment to the next. */
static bool is_full_input(const rl_kernel_instance *kernel, uint32_t input) {
  const rl_kernel_operator *op = kernel->params.op;
  const int64_t elements = op->input_elements(&kernel->shape, input);
  const int64_t last_segment = op->output_segment_count(&kernel->shape) - 1;
  return find_window(kernel, input, 0, 1).elements == elements &&
         find_window(kernel, input, last_segment, 1).elements == elements;
}

int rl_input_stager_open(rl_input_stager *stager, rl_error *err) {
  const rl_kernel_instance *kernel = stager->kernel;
  const rl_kernel_operator *op = kernel->params.op;
  stager->thread_buffers = calloc(rl_thread_pool_thread_count(kernel->thread_pool), sizeof *stager->thread_buffers);
  bool failed = stager->thread_buffers == NULL;
  for (uint32_t input = 0; input < op->input_count; input++) {
    if (!is_full_input(kernel, input)) continue;
    stager->full_input_buffers[input] = malloc((size_t)op->input_elements(&kernel->shape, input) * stager->value_bytes);
    failed |= stager->full_input_buffers[input] == NULL;
  }
  return failed ? rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the inputs of a kernel") : 0;
}

void rl_input_stager_close(rl_input_stager *stager) {
  for (uint32_t thread = 0; stager->thread_buffers && thread < rl_thread_pool_thread_count(stager->kernel->thread_pool); thread++)
    free(stager->thread_buffers[thread].memory);
  for (uint32_t input = 0; input < RL_KERNEL_INPUTS_MAX; input++) free(stager->full_input_buffers[input]);
  free(stager->thread_buffers);
}

typedef struct full_input_request {
  rl_input_stager *stager;
  uint32_t input;
} full_input_request;

/* Reads elements [first, first + count) of a full input. */
static int read_chunk(void *context, int64_t first, int64_t count, uint32_t thread, rl_error *err) {
  const full_input_request *request = context;
  rl_input_stager *stager = request->stager;
  (void)thread, (void)err;
  char *buffer = (char *)stager->full_input_buffers[request->input] + (size_t)first * stager->value_bytes;
  const void *values = stager->read_input(stager->kernel, request->input, first, count, buffer);
  /* The pointer to the first chunk is the pointer to all values, because read_input returns the buffer for every chunk or a
   * pointer into the input for every chunk. */
  if (first == 0) stager->full_input_values[request->input] = values;
  return 0;
}

int rl_input_stager_read_full_inputs(rl_input_stager *stager, rl_error *err) {
  enum { CHUNK_ELEMENTS = 1 << 16 };
  const rl_kernel_instance *kernel = stager->kernel;
  for (uint32_t input = 0; input < RL_KERNEL_INPUTS_MAX; input++) {
    full_input_request request = {stager, input};
    if (stager->full_input_buffers[input] == NULL) continue;
    const int64_t elements = kernel->params.op->input_elements(&kernel->shape, input);
    if (rl_parallel_for(kernel->thread_pool, kernel->base.device, elements, CHUNK_ELEMENTS, read_chunk, &request, err) < 0)
      return -1;
  }
  return 0;
}

/* --- processing segments ----------------------------------------------------------------------------------------------- */

static int grow_buffer(rl_thread_buffer *buffer, size_t bytes, rl_error *err) {
  if (bytes <= buffer->bytes) return 0;
  void *memory = realloc(buffer->memory, bytes);
  if (memory == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for %zu bytes of a kernel's values", bytes);
  *buffer = (rl_thread_buffer){memory, bytes};
  return 0;
}

/* Finds each input's window of `segments` output segments; a full input gets an empty window. Returns the number of values that
 * the thread's buffer must hold: the values of the windows and of the output segments. */
static int64_t find_windows(const rl_input_stager *stager, int64_t first_segment, int64_t segments,
                            window windows[RL_KERNEL_INPUTS_MAX]) {
  const rl_kernel_instance *kernel = stager->kernel;
  int64_t values = segments * rl_kernel_elements_per_output_segment(kernel);
  for (uint32_t input = 0; input < kernel->params.op->input_count; input++) {
    const bool is_full = stager->full_input_buffers[input] != NULL;
    windows[input] = is_full ? (window){0, 0} : find_window(kernel, input, first_segment, segments);
    values += windows[input].elements;
  }
  return values;
}

/* Returns true if the first half of the segments needs at most 3/4 of the values of all segments. If it needs more, the windows
 * of the two halves overlap so much that halving would read much of the input twice. values: result of find_windows for all
 * segments. */
static bool halving_saves_memory(const rl_input_stager *stager, int64_t first_segment, int64_t segments, int64_t values) {
  window windows[RL_KERNEL_INPUTS_MAX];
  return find_windows(stager, first_segment, segments / 2, windows) <= values / 4 * 3;
}

int rl_input_stager_process(rl_input_stager *stager, int64_t first, int64_t count, uint32_t thread,
                            rl_output_segment_function *function, void *context, rl_error *err) {
  window windows[RL_KERNEL_INPUTS_MAX] = {{0}};
  const int64_t values = find_windows(stager, first, count, windows), half = count / 2;
  if (count > 1 && values > stager->max_buffer_values && halving_saves_memory(stager, first, count, values)) {
    if (rl_input_stager_process(stager, first, half, thread, function, context, err) < 0) return -1;
    return rl_input_stager_process(stager, first + half, count - half, thread, function, context, err);
  }
  if (grow_buffer(&stager->thread_buffers[thread], (size_t)values * stager->value_bytes, err) < 0) return -1;
  const void *in[RL_KERNEL_INPUTS_MAX];
  char *buffer = stager->thread_buffers[thread].memory;
  for (uint32_t input = 0; input < RL_KERNEL_INPUTS_MAX; input++) {
    in[input] = stager->full_input_values[input];
    if (windows[input].elements == 0) continue;
    in[input] = stager->read_input(stager->kernel, input, windows[input].start, windows[input].elements, buffer);
    buffer += (size_t)windows[input].elements * stager->value_bytes;
  }
  function(context, in, first, count, buffer);
  return 0;
}
