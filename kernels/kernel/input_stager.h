/* Input windows of output segments (kernel.h) as float or double numbers to compute with, staged in a buffer of each thread. The
 * CPU engine and the check compute from them. */
#ifndef RL_KERNELS_KERNEL_INPUT_STAGER_H
#define RL_KERNELS_KERNEL_INPUT_STAGER_H

#include "kernel/instance.h"

/* Elements of one output segment. */
int64_t rl_kernel_segment_elements(const rl_kernel_instance *kernel);
/* Returns how many segments have about `elements` elements together; at least 1. */
int64_t rl_kernel_segments_per_elements(const rl_kernel_instance *kernel, int64_t elements);

typedef struct rl_thread_buffer { /* grows as needed */
  void *memory;
  size_t bytes;
} rl_thread_buffer;

typedef struct rl_input_stager {
  /* Set by the caller. */
  const rl_kernel_instance *kernel;
  size_t value_bytes; /* sizeof(float) or sizeof(double) */
  int64_t
      max_buffer_values; /* limit of the input windows and outputs that are processed at once; a single segment may exceed it */
  /* Returns elements [start, start + count) of an input as numbers: converted into buffer, or where the input itself holds them.
   */
  const void *(*read)(const rl_kernel_instance *kernel, uint32_t input, int64_t start, int64_t count, void *buffer);
  /* Inputs that every segment needs in full are read once; for all others these are NULL. */
  const void *full_input_values[RL_KERNEL_MAX_INPUTS];
  void *full_input_buffers[RL_KERNEL_MAX_INPUTS];
  rl_thread_buffer *thread_buffers;
} rl_input_stager;

/* Allocates buffers. Close the stager also after a failure. */
int rl_input_stager_open(rl_input_stager *stager, rl_error *err);
/* Reads the full inputs. To be called again whenever the inputs have changed. */
int rl_input_stager_read_full_inputs(rl_input_stager *stager, rl_error *err);
void rl_input_stager_close(rl_input_stager *stager);

/* in: the windows of segments [first, first + count); out: a buffer for their elements. */
typedef void rl_segment_function(void *context, const void *const *in, int64_t first, int64_t count, void *out);
/* Calls function for segments [first, first + count) on the calling thread. Halves the range while max_buffer_values is exceeded,
 * unless the segments share most of a large window, which halving would read twice. */
int rl_input_stager_process(rl_input_stager *stager, int64_t first, int64_t count, uint32_t thread, rl_segment_function *function,
                            void *context, rl_error *err);

#endif
