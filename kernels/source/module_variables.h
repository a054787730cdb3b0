/* Saves and restores the __device__ and __managed__ variables of a posted kernel's module. They are restored before every launch,
 * so that a launch can't use values that an earlier launch stored in them. Not restored: memory between or after variables, which
 * a kernel reaches with an index out of bounds, and string literals, which an edited cubin may overwrite. */
#ifndef RL_KERNELS_SOURCE_MODULE_VARIABLES_H
#define RL_KERNELS_SOURCE_MODULE_VARIABLES_H

#include <cuda_runtime.h>

#include "device/device.h"

typedef struct rl_module_variables rl_module_variables;

/* Finds the variables of a loaded cubin and saves their contents on the device. Returns -1 with RL_INPUT if the cubin
 * may hide variables (rl_cubin_list_variables), if two have the same address, or if the driver does not return the address of
 * one; string literals are then left out. */
int rl_module_variables_open(cudaLibrary_t library, const void *cubin, size_t size, rl_stream stream,
                             rl_module_variables **variables, rl_error *err);
/* Returns the size of the variables in bytes. */
double rl_module_variables_restored_bytes(const rl_module_variables *variables);
/* Enqueues copies of the saved contents to the variables. Launches no kernel. */
int rl_module_variables_enqueue_restore(const rl_module_variables *variables, rl_stream stream, rl_error *err);
void rl_module_variables_close(rl_module_variables *variables); /* NULL is allowed */

#endif
