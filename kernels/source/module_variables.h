/* Saves and restores the __device__ and __managed__ variables of a posted kernel's module. They are restored before every launch,
 * so that a launch can't use values that an earlier launch stored. */
#ifndef RL_KERNELS_SOURCE_MODULE_VARIABLES_H
#define RL_KERNELS_SOURCE_MODULE_VARIABLES_H

#include <cuda_runtime.h>

#include "device/device.h"

typedef struct rl_module_variables rl_module_variables;

/* Finds the variables of a loaded cubin and saves their contents on the device. image: the loaded binary. If the image is not a
 * cubin, its variables are unknown, and *variables is empty. */
int rl_module_variables_open(cudaLibrary_t library, const void *image, size_t size, rl_stream stream,
                             rl_module_variables **variables, rl_error *err);
/* Returns the size in bytes of the variables that are restored; NAN: the image is not a cubin. */
double rl_module_variables_restored_bytes(const rl_module_variables *variables);
/* Returns the size in bytes of the variables that are not restored, because the driver does not return their addresses; NAN: the
 * image is not a cubin. */
double rl_module_variables_unrestored_bytes(const rl_module_variables *variables);
/* Enqueues copies of the saved contents to the variables. Launches no kernel. */
int rl_module_variables_enqueue_restore(const rl_module_variables *variables, rl_stream stream, rl_error *err);
void rl_module_variables_close(rl_module_variables *variables); /* NULL is allowed */

#endif
