/* The output of rooflined-nvrtc, which is also the content of a cache file: an rl_nvrtc_output_header, the symbol, the log (both
 * without NUL), and the image. */
#ifndef RL_KERNELS_NVRTC_OUTPUT_H
#define RL_KERNELS_NVRTC_OUTPUT_H

#include <stdint.h>

#define RL_NVRTC_MAGIC "RLN2"

typedef enum rl_nvrtc_status {
  RL_NVRTC_COMPILED,
  RL_NVRTC_COMPILE_ERROR, /* the code has errors, which the log lists */
  RL_NVRTC_CANNOT_COMPILE /* this host can't compile; the log has the reason */
} rl_nvrtc_status;

typedef struct rl_nvrtc_output_header {
  char magic[4];
  uint32_t status, symbol_bytes, log_bytes, image_bytes;
} rl_nvrtc_output_header;

#endif
