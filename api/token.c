#include "api/token.h"

#include <sodium.h>
#include <string.h>

static int ready(rl_error *err) { return sodium_init() < 0 ? rl_fail(err, RL_SYS, 0, "libsodium can't be initialised") : 0; }

int rl_token_make(char *token, rl_error *err) {
  unsigned char bytes[32];
  if (ready(err) < 0) return -1;
  randombytes_buf(bytes, sizeof bytes);
  sodium_bin2base64(token, RL_TOKEN_SIZE, bytes, sizeof bytes, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
  sodium_memzero(bytes, sizeof bytes);
  return 0;
}

int rl_token_hash(const char *token, char *hash, rl_error *err) {
  unsigned char digest[32];
  if (ready(err) < 0) return -1;
  crypto_generichash(digest, sizeof digest, (const unsigned char *)token, strlen(token), NULL, 0);
  sodium_bin2hex(hash, RL_TOKEN_HASH_SIZE, digest, sizeof digest);
  return 0;
}
