/* The __device__ and __managed__ variables of a posted kernel's module. They are restored before every launch, so that a launch
 * finds no values of an earlier one. */
#ifndef RL_KERNELS_SOURCE_MODULE_VARIABLES_H
#define RL_KERNELS_SOURCE_MODULE_VARIABLES_H

#include <cuda_runtime.h>

#include "device/device.h"

typedef struct rl_module_variables rl_module_variables;

/* Finds the variables of a loaded cubin and saves their contents on the device. image: the cubin; other binaries, whose variables
 * are not known, and a cubin without variables give an empty set. */
int rl_module_variables_open(cudaLibrary_t library, const void *image, size_t size, rl_stream stream,
                             rl_module_variables **variables, rl_error *err);
/* Bytes that are restored; NAN: the image is no cubin. */
double rl_module_variables_restored_bytes(const rl_module_variables *variables);
/* Bytes of variables whose address the driver does not tell; NAN: the image is no cubin. */
double rl_module_variables_unrestored_bytes(const rl_module_variables *variables);
/* Enqueues copies of the saved contents; no kernel. */
int rl_module_variables_enqueue_restore(const rl_module_variables *variables, rl_stream stream, rl_error *err);
void rl_module_variables_close(rl_module_variables *variables); /* NULL: nothing */

#endif
