/* A cache of compiled code on disk. It has one file for each combination of NVRTC version, target, entry, options and code; the
 * name of the file is the hash of these. base/cache.h bounds the number and size of the files. The folder may hold other files.
 * If the folder can't be written, nothing is cached, and no error is reported. */
#ifndef RL_KERNELS_NVRTC_CACHE_H
#define RL_KERNELS_NVRTC_CACHE_H

#include <stddef.h>

#include "base/error.h"
#include "base/sha256.h"

/* Hashes the version, the NULL-terminated words (target, entry, options) and the code. */
int rl_nvrtc_cache_key(const char *version, char *const *words, const char *code, size_t length, char key[RL_SHA256_SIZE],
                       rl_error *err);
/* Reads the bytes that are stored under the key; the caller frees them. Returns -1 when the key is not cached. */
int rl_nvrtc_cache_get(const char *folder, const char *key, unsigned char **bytes, size_t *size);
/* Writes a temporary file and renames it, so that readers never see part of it. */
void rl_nvrtc_cache_put(const char *folder, const char *key, const void *bytes, size_t size);

#endif
