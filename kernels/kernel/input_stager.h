/* Reads a kernel's inputs on the host, converts their elements to float or double, and calls a function that computes the output
 * from them, a few output segments at a time. The CPU engine and the check use these functions.
 *
 *   output segment   contiguous part of the output that can be computed alone: an element, a row, an image. All segments have
 *                    the same size (rl_kernel_operator.output_segment_count)
 *   window           the range of an input's elements that given segments depend on (rl_kernel_operator.input_window)
 *   full input       an input whose window is the whole input for every segment
 *   value            a converted element: a float or a double
 *
 * Each thread has a buffer for the windows of the segments that it computes. Full inputs are read once, for all threads. */
#ifndef RL_KERNELS_KERNEL_INPUT_STAGER_H
#define RL_KERNELS_KERNEL_INPUT_STAGER_H

#include "kernel/instance.h"

int64_t rl_kernel_elements_per_output_segment(const rl_kernel_instance *kernel);
/* Returns how many whole segments fit into `elements` output elements; at least 1. */
int64_t rl_kernel_output_segments_for_elements(const rl_kernel_instance *kernel, int64_t elements);

typedef struct rl_thread_buffer { /* grows as needed */
  void *memory;
  size_t bytes;
} rl_thread_buffer;

typedef struct rl_input_stager {
  /* The caller sets the first four members before rl_input_stager_open. */
  const rl_kernel_instance *kernel;
  size_t value_bytes; /* sizeof(float) or sizeof(double) */
  /* Limit of the number of values that one call of the function reads and writes. A call for one segment may exceed it. */
  int64_t max_buffer_values;
  /* Converts elements [start, start + count) of an input into `buffer` and returns it. An implementation may instead return a
   * pointer into the input itself, if the input's elements are of the value type. */
  const void *(*read_input)(const rl_kernel_instance *kernel, uint32_t input, int64_t start, int64_t count, void *buffer);
  /* Both arrays have one pointer for each input. It is NULL if the input is not a full input. */
  const void *full_input_values[RL_KERNEL_INPUTS_MAX]; /* pointer that read_input returned */
  void *full_input_buffers[RL_KERNEL_INPUTS_MAX];      /* buffer that read_input may fill */
  rl_thread_buffer *thread_buffers;
} rl_input_stager;

/* Allocates buffers. Close the stager also after a failure. */
int rl_input_stager_open(rl_input_stager *stager, rl_error *err);
/* Reads the full inputs. Call it again after the inputs have changed. */
int rl_input_stager_read_full_inputs(rl_input_stager *stager, rl_error *err);
void rl_input_stager_close(rl_input_stager *stager);

/* Computes segments [first, first + count) into `out`. in: for each input, the values of the segments' window; of a full input,
 * all values. */
typedef void rl_output_segment_function(void *context, const void *const *in, int64_t first, int64_t count, void *out);
/* Calls `function` on the calling thread for the segments [first, first + count). If that call would exceed max_buffer_values,
 * calls `function` for the first half of the segments and then for the second half, and divides each half in the same way. Does
 * not divide segments if the windows of the halves overlap much, because the second half would read the shared elements again.
 * thread: the caller's index in the thread pool. */
int rl_input_stager_process(rl_input_stager *stager, int64_t first, int64_t count, uint32_t thread,
                            rl_output_segment_function *function, void *context, rl_error *err);

#endif
