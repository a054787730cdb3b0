/* Functions of the driver, which the process loads when it first needs CUDA. */
#ifndef RL_CUPTI_DRIVER_H
#define RL_CUPTI_DRIVER_H

#include "base/error.h"

/* The function of that name as CUDA 12 has it, for a variable of its type: *(void **)&pointer = rl_driver_function(...). NULL and
 * err. */
void *rl_driver_function(const char *name, rl_error *err);

#endif
