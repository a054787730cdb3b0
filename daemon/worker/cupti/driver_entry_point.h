/* Resolves functions of the CUDA driver API at run time, so that the program need not link libcuda. */
#ifndef RL_CUPTI_DRIVER_ENTRY_POINT_H
#define RL_CUPTI_DRIVER_ENTRY_POINT_H

#include "base/error.h"

/* Returns the function in its CUDA 12.0 version, or NULL and err. Use: *(void **)&pointer = rl_driver_entry_point("cuMemMap",
 * err). */
void *rl_driver_entry_point(const char *name, rl_error *err);

#endif
