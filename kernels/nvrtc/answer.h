/* What rooflined-nvrtc writes to its standard output, and what the cache keeps: this header, then the texts (without a NUL)
 * and the image. */
#ifndef RL_KERNELS_NVRTC_ANSWER_H
#define RL_KERNELS_NVRTC_ANSWER_H

#include <stdint.h>

#define RL_NVRTC_MAGIC "RLN1"

typedef enum rl_nvrtc_status {
  RL_NVRTC_COMPILED,
  RL_NVRTC_REFUSED,   /* the text is wrong: the log says where */
  RL_NVRTC_IMPOSSIBLE /* nothing can be compiled here: the log says why */
} rl_nvrtc_status;

typedef struct rl_nvrtc_answer {
  char magic[4];
  uint32_t status, symbol_bytes, log_bytes, image_bytes;
} rl_nvrtc_answer;

#endif
