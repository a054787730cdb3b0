/* Computes SHA-256 hashes as lower-case hexadecimal text. */
#ifndef RL_BASE_SHA256_H
#define RL_BASE_SHA256_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { RL_SHA256_SIZE = 65 }; /* 64 digits and the NUL */

void rl_sha256(const void *data, size_t size, char hex[RL_SHA256_SIZE]);

#ifdef __cplusplus
}
#endif
#endif
