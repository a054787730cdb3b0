/* The variants of posted code (ways to compile it): their names and compiler options. */
#ifndef RL_KERNELS_SOURCE_VARIANTS_H
#define RL_KERNELS_SOURCE_VARIANTS_H

#include "source/options.h"
#include "source/request.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const rl_field rl_source_variant_fields[];

/* Decodes the variants and checks the options of source->request. -1 with RL_INPUT and a pointer. */
int rl_source_decode_variants(rl_source *source, rl_error *err);
/* Writes the compiler options of a variant. */
int rl_source_compile_options(const rl_source *source, int variant, rl_source_options *options, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
