/* The entry and the launch configuration of a posted kernel, or of its reference. */
#ifndef RL_KERNELS_SOURCE_LAUNCH_REQUEST_H
#define RL_KERNELS_SOURCE_LAUNCH_REQUEST_H

#include "source/request.h"

/* Checks entry, grid, block and cluster. prefix: JSON pointer of the object that has these members, "" or "/expected/reference".
 * Returns -1 with RL_INPUT and the JSON pointer of an invalid member. */
int rl_source_check_launch_request(const rl_source_request *request, const char *prefix, rl_error *err);

#endif
