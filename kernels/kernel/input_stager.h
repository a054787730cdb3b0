/* Reads the inputs of a kernel on the host, a part at a time, and calls a function that computes output segments from them. Used
 * by the CPU engine and the check.
 *
 *   output segment   contiguous part of the output that can be computed alone: an element, a row, an image. All segments have
 *                    the same size (rl_kernel_operator.output_segment_count)
 *   window           range of an input's elements from which given segments are computed (rl_kernel_operator.input_window)
 *   value            an element as float or double, the type in which the function computes
 *
 * The stager holds values in memory: the windows in one buffer per thread, and in full the inputs that every segment needs in
 * full. */
#ifndef RL_KERNELS_KERNEL_INPUT_STAGER_H
#define RL_KERNELS_KERNEL_INPUT_STAGER_H

#include "kernel/instance.h"

/* Returns the number of elements of one segment. */
int64_t rl_kernel_elements_per_output_segment(const rl_kernel_instance *kernel);
/* Returns how many whole segments `elements` output elements hold; at least 1. */
int64_t rl_kernel_output_segments_for_elements(const rl_kernel_instance *kernel, int64_t elements);

typedef struct rl_thread_buffer { /* grows as needed */
  void *memory;
  size_t bytes;
} rl_thread_buffer;

typedef struct rl_input_stager {
  /* Set by the caller. */
  const rl_kernel_instance *kernel;
  size_t value_bytes; /* size of one value: sizeof(float) or sizeof(double) */
  /* Limit of the values that one call of the function gets: windows and output segments together. A single segment may exceed it.
   */
  int64_t max_buffer_values;
  /* Returns the values of elements [start, start + count) of an input: a pointer to `buffer`, after converting the elements into
   * it, or a pointer into the input itself when its elements are values already. */
  const void *(*read_input)(const rl_kernel_instance *kernel, uint32_t input, int64_t start, int64_t count, void *buffer);
  /* Inputs that every segment needs in full: their values, and the buffers for converted ones. NULL for the other inputs. */
  const void *full_input_values[RL_KERNEL_INPUTS_MAX];
  void *full_input_buffers[RL_KERNEL_INPUTS_MAX];
  rl_thread_buffer *thread_buffers;
} rl_input_stager;

/* Allocates buffers. Close the stager also after a failure. */
int rl_input_stager_open(rl_input_stager *stager, rl_error *err);
/* Reads the inputs that every segment needs in full. Call again after the inputs have changed. */
int rl_input_stager_read_full_inputs(rl_input_stager *stager, rl_error *err);
void rl_input_stager_close(rl_input_stager *stager);

/* Computes segments [first, first + count). in: the values of each input's window; out: a buffer for the segments' values. */
typedef void rl_output_segment_function(void *context, const void *const *in, int64_t first, int64_t count, void *out);
/* Calls function for segments [first, first + count) on the calling thread. While the values exceed max_buffer_values, the range
 * is halved, unless both halves need most of the same window, which would then be read twice. */
int rl_input_stager_process(rl_input_stager *stager, int64_t first, int64_t count, uint32_t thread,
                            rl_output_segment_function *function, void *context, rl_error *err);

#endif
