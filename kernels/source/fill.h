/* Queue the filling of a buffer of the device by its init and seed; index: its place among the arguments, of which no two get the
 * same numbers. */
#ifndef RL_SOURCE_FILL_H
#define RL_SOURCE_FILL_H

#include "source/source.h"

int rl_source_fill(const rl_source_argument *argument, int index, void *to, rl_stream stream, rl_error *err);

#endif
