/* The values of a posted kernel's arguments, in the form that cudaLaunchKernelExC needs. */
#ifndef RL_SOURCE_ARGUMENT_VALUES_H
#define RL_SOURCE_ARGUMENT_VALUES_H

#include "source/request.h"

typedef struct rl_source_argument_values {
  uint64_t words[RL_SOURCE_ARGUMENTS_MAX]; /* value of each argument that is a scalar, or address of its buffer */
  unsigned char tensor_maps[RL_SOURCE_ARGUMENTS_MAX][RL_SOURCE_TENSOR_MAP_BYTES];
  void *pointers[RL_SOURCE_ARGUMENTS_MAX]; /* pointers[i]: address of the value of argument i in this struct */
} rl_source_argument_values;

/* Sets the values of all arguments. buffers[i]: device memory of argument i if it is a buffer. Returns -1 with RL_INPUT when the
 * driver refuses a tensor map. *values must not be moved afterwards, because it contains pointers into itself. */
int rl_source_argument_values_set(const rl_source *source, void *const *buffers, rl_source_argument_values *values,
                                  rl_error *err);
/* Returns the size in bytes of the kernel parameter that the argument is passed to. */
size_t rl_source_parameter_bytes(const rl_source_argument *argument);

#endif
