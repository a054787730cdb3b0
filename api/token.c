/* Random tokens and their hashes by libsodium. */
#include "api/token.h"

#include <sodium.h>
#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"

static int init_libsodium(rl_error *err) {
  return sodium_init() < 0 ? rl_fail(err, RL_ERRNO, 0, "libsodium can't be initialised") : 0;
}

int rl_token_generate(char *token, rl_error *err) {
  unsigned char bytes[32];
  if (init_libsodium(err) < 0) return -1;
  randombytes_buf(bytes, sizeof bytes);
  sodium_bin2base64(token, RL_TOKEN_SIZE, bytes, sizeof bytes, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
  sodium_memzero(bytes, sizeof bytes);
  return 0;
}

int rl_token_hash(const char *token, char *hash, rl_error *err) {
  unsigned char digest[32];
  if (init_libsodium(err) < 0) return -1;
  crypto_generichash(digest, sizeof digest, (const unsigned char *)token, strlen(token), NULL, 0);
  sodium_bin2hex(hash, RL_TOKEN_HASH_SIZE, digest, sizeof digest);
  return 0;
}

/* C0, DEL, and C1 (U+0080 to U+009F); some terminals start an escape sequence at U+009B. */
static bool is_control(const unsigned char *text) {
  return text[0] < 0x20 || text[0] == 0x7f || (text[0] == 0xc2 && text[1] < 0xa0);
}

int rl_token_check_name(const char *name, rl_error *err) {
  if (rl_utf8_is_blank(name)) return rl_fail(err, RL_INPUT, 0, "the name of a token must not be empty or blank");
  if (!rl_utf8_is_valid(name, strlen(name))) return rl_fail(err, RL_INPUT, 0, "the name of a token must be UTF-8");
  for (const unsigned char *c = (const unsigned char *)name; *c != '\0'; c++)
    if (is_control(c)) return rl_fail(err, RL_INPUT, 0, "the name of a token must not have control characters");
  return 0;
}
