/* CUDA C++ text to machine code. NVRTC runs in a process of its own, rooflined-nvrtc, which can read the CUDA headers and no
 * other file (jail.h): the text may come from anybody. Plain C, built without CUDA; libnvrtc is looked for when something is
 * compiled. */
#ifndef RL_KERNELS_NVRTC_NVRTC_H
#define RL_KERNELS_NVRTC_NVRTC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* RL_NVRTC_LOG_MAX: bytes that are kept of a log. */
enum { RL_NVRTC_LOG_MAX = 16 << 10, RL_NVRTC_OPTIONS_MAX = 48 };

typedef struct rl_nvrtc_request {
  const char *code;
  size_t length;
  const char *entry;          /* the kernel: a name, or an expression like "scale<float, 4>" */
  const char *arch;           /* "sm_90a" */
  const char *const *options; /* NVRTC's own, at most RL_NVRTC_OPTIONS_MAX; which ones are harmless is for the caller to say */
  int option_count;
  const char *cache;    /* folder of what was compiled before, made when missing; NULL: compile anew */
  const char *compiler; /* path of rooflined-nvrtc; NULL: beside the running program */
} rl_nvrtc_request;

typedef struct rl_nvrtc_result {
  unsigned char *image; /* cubin, `size` bytes */
  size_t size;
  char *symbol;      /* the entry's name in it */
  char *log;         /* what the compiler said, at most RL_NVRTC_LOG_MAX bytes; also where it failed; NULL: nothing */
  double compile_ms; /* from the call to the image, wherever that came from */
  double spill_store_bytes, spill_load_bytes; /* of one thread, as ptxas counts them; NAN: it did not say */
  bool cached;
} rl_nvrtc_result;

/* -1: RL_INPUT at "/code" with the first error when the text does not compile, or when the compiler dies of it; RL_SYS when there
 * is no compiler or no jail for it. The result is to be cleared in any case. */
int rl_nvrtc_compile(const rl_nvrtc_request *request, rl_nvrtc_result *result, rl_error *err);
void rl_nvrtc_clear(rl_nvrtc_result *result);

#ifdef __cplusplus
}
#endif
#endif
