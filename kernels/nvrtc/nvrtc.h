/* Compiles CUDA C++ to machine code. The code is not trusted, so NVRTC runs in a separate process, rooflined-nvrtc, inside a
 * sandbox that can read the CUDA headers, the folders of the environment variable ROOFLINED_SOURCE_INCLUDES, and no other file.
 * Plain C, built without CUDA; libnvrtc is loaded at run time. */
#ifndef RL_KERNELS_NVRTC_NVRTC_H
#define RL_KERNELS_NVRTC_NVRTC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  RL_NVRTC_LOG_MAX_BYTES = 16 << 10, /* maximum bytes that are kept of a log */
  RL_NVRTC_OPTIONS_MAX = 48
};

typedef struct rl_nvrtc_request {
  const char *code;
  size_t length;
  const char *entry;          /* the kernel: a name, or an expression such as "scale<float, 4>" */
  const char *arch;           /* "sm_90a" */
  const char *const *options; /* compiler options of NVRTC, at most RL_NVRTC_OPTIONS_MAX; not checked here */
  int option_count;
  const char *cache_dir;     /* folder of the cache, created when missing; NULL: no cache */
  const char *compiler_path; /* path of rooflined-nvrtc; NULL: in the running program's folder */
} rl_nvrtc_request;

typedef struct rl_nvrtc_result {
  unsigned char *image; /* the cubin */
  size_t image_bytes;
  char *symbol;      /* the entry's name in the cubin */
  char *log;         /* the compiler's log, at most RL_NVRTC_LOG_MAX_BYTES bytes; set also after a compile error; NULL: none */
  double compile_ms; /* duration of the call of rl_nvrtc_compile, also when the cache had the result */
  double spill_store_bytes, spill_load_bytes; /* bytes spilled per thread, as ptxas reports; NAN: not reported */
  bool cached;                                /* the cache had the result */
} rl_nvrtc_result;

/* Compiles, or reads the result from the cache. Returns -1 with RL_INPUT at /code and the first error when the code does not
 * compile or crashes the compiler; -1 with RL_ERRNO when there is no compiler or no sandbox. The caller clears the result, also
 * after a failure. */
int rl_nvrtc_compile(const rl_nvrtc_request *request, rl_nvrtc_result *result, rl_error *err);
void rl_nvrtc_clear(rl_nvrtc_result *result);
/* Runs the compiler with --version, as the first rl_nvrtc_compile with a cache would otherwise do. compiler_path: as in
 * rl_nvrtc_request. Failures are ignored, because rl_nvrtc_compile then reports them. */
void rl_nvrtc_prepare(const char *compiler_path);

#ifdef __cplusplus
}
#endif
#endif
