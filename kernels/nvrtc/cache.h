/* Compiled code on disk: one file for each version of NVRTC, device, entry, options and text, named by their hash, written
 * under another name first. Their number and size are bounded (base/cache.h). Other files may lie beside them. A cache that can't
 * be written is no error. */
#ifndef RL_KERNELS_NVRTC_CACHE_H
#define RL_KERNELS_NVRTC_CACHE_H

#include <stddef.h>

#include "base/error.h"
#include "base/sha256.h"

/* words: NULL-terminated. */
int rl_nvrtc_cache_key(const char *version, char *const *words, const char *code, size_t length, char key[RL_SHA256_SIZE],
                       rl_error *err);
/* 0 and malloc'ed bytes; -1 when there is none. */
int rl_nvrtc_cache_get(const char *folder, const char *key, unsigned char **bytes, size_t *size);
void rl_nvrtc_cache_put(const char *folder, const char *key, const void *bytes, size_t size);

#endif
