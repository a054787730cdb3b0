/* The arguments of a posted kernel, and the expected contents of one of them. */
#ifndef RL_KERNELS_SOURCE_ARGUMENTS_H
#define RL_KERNELS_SOURCE_ARGUMENTS_H

#include "source/request.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const rl_field rl_source_argument_fields[], rl_source_expected_fields[];

/* Decode source->request.arguments, then source->request.expected, into *source. Call them in this order. Both return -1 with
 * RL_INPUT and a JSON pointer when the request is invalid. */
int rl_source_decode_arguments(rl_source *source, rl_error *err);
int rl_source_decode_expected(rl_source *source, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
