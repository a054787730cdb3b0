/* Options of the compiler that a client may ask for: those that change what code comes out, and none that names a file. */
#ifndef RL_KERNELS_SOURCE_OPTIONS_H
#define RL_KERNELS_SOURCE_OPTIONS_H

#include <stddef.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { RL_SOURCE_OPTIONS_MAX = 24, RL_SOURCE_OPTION_ROOM = 40 };

#define RL_SOURCE_OPTIONS_SUMMARY                                                                                      \
  "of the compiler: -use_fast_math, -maxrregcount=N, -DNAME=VALUE, -std=c++17, -lineinfo, -fmad=, -ftz=, -prec-div=, " \
  "-prec-sqrt=, -extra-device-vectorization, -O0 to -O3"

typedef struct rl_source_options { /* as NVRTC takes them; items point into text */
  const char *items[RL_SOURCE_OPTION_ROOM];
  int count;
  char text[8192];
  size_t used;
} rl_source_options;

/* Append what the option `asked` means to NVRTC; RL_INPUT at `at` when it is not one that may be asked for. */
int rl_source_option_add(rl_source_options *options, const char *asked, const char *at, rl_error *err);
/* NAME or NAME=VALUE as a macro. */
int rl_source_define_add(rl_source_options *options, const char *define, const char *at, rl_error *err);
/* An option of our own. */
int rl_source_option_put(rl_source_options *options, const char *at, rl_error *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#ifdef __cplusplus
}
#endif
#endif
