/* Compiler options that a client may request: options that change the generated code, but no option that names a file. */
#ifndef RL_KERNELS_SOURCE_OPTIONS_H
#define RL_KERNELS_SOURCE_OPTIONS_H

#include <stddef.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  RL_SOURCE_OPTIONS_MAX = 24,      /* maximum number of options of a request */
  RL_SOURCE_NVRTC_OPTIONS_MAX = 40 /* maximum number of options of a request and one of its variants together */
};

#define RL_SOURCE_OPTIONS_SUMMARY                                                                                       \
  "compiler options: -use_fast_math, -maxrregcount=N, -DNAME=VALUE, -std=c++17, -lineinfo, -fmad=, -ftz=, -prec-div=, " \
  "-prec-sqrt=, -extra-device-vectorization, -O0 to -O3"

typedef struct rl_source_options {
  const char *items[RL_SOURCE_NVRTC_OPTIONS_MAX]; /* NVRTC options; they point into `text` */
  int count;
  char text[8192];
  size_t used_bytes; /* of text */
} rl_source_options;

/* Translates a client's option to the NVRTC option and appends it. Returns -1 with RL_INPUT at the JSON pointer `pointer` when
 * the option is not allowed, or when there are too many options. */
int rl_source_options_add(rl_source_options *options, const char *option, const char *pointer, rl_error *err);
/* Appends the definition of a macro: NAME or NAME=VALUE. Returns -1 with RL_INPUT when `macro` has another form or is too
 * long. */
int rl_source_options_add_macro(rl_source_options *options, const char *macro, const char *pointer, rl_error *err);
/* Appends an NVRTC option without checking it. */
int rl_source_options_append(rl_source_options *options, const char *pointer, rl_error *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#ifdef __cplusplus
}
#endif
#endif
