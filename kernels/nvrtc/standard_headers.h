/* The C and C++ standard headers that posted code can include. NVRTC itself has no standard headers. CCCL, which is part of
 * CUDA, has the same declarations for device code in the folder cuda/std and the namespace cuda::std. Each text here includes
 * such a header and makes its names visible in the namespace std. NVRTC reads the texts from memory. */
#ifndef RL_KERNELS_NVRTC_STANDARD_HEADERS_H
#define RL_KERNELS_NVRTC_STANDARD_HEADERS_H

#include "base/sha256.h"

/* Arguments of nvrtcCreateProgram: names[i] is the name in the #include directive, texts[i] the text of that header. Both arrays
 * are static. */
typedef struct rl_standard_headers {
  int count;
  const char *const *names, *const *texts;
} rl_standard_headers;

rl_standard_headers rl_standard_headers_get(void);
/* Hashes all names and texts. */
void rl_standard_headers_hash(char hex[RL_SHA256_SIZE]);

#endif
