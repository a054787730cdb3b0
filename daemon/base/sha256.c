/* Implements sha256.h with libsodium. */
#include "base/sha256.h"

#include <sodium.h>

void rl_sha256(const void *data, size_t size, char hex[RL_SHA256_SIZE]) {
  unsigned char digest[crypto_hash_sha256_BYTES];
  crypto_hash_sha256(digest, data, size);
  sodium_bin2hex(hex, RL_SHA256_SIZE, digest, sizeof digest);
}
