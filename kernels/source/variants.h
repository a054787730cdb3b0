/* The variants of posted code: each has a name and compiler options. */
#ifndef RL_KERNELS_SOURCE_VARIANTS_H
#define RL_KERNELS_SOURCE_VARIANTS_H

#include "source/options.h"
#include "source/request.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const rl_field rl_source_variant_fields[];

/* Decodes source->request.variants and checks source->request.options. Returns -1 with RL_INPUT and a JSON pointer when a
 * variant or an option is invalid. */
int rl_source_decode_variants(rl_source *source, rl_error *err);
/* Writes the NVRTC options of the request and of a variant into *options. */
int rl_source_compile_options(const rl_source *source, int variant, rl_source_options *options, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
