/* Bearer tokens: 32 random bytes as base64url, printed once by `rooflinectl token`. The store has only the hash (BLAKE2b-256
 * of the token's text, in hexadecimal). A token has 256 bits of entropy, so a slow password hash would add no security, and the
 * time of a look-up by hash reveals nothing about the token. Used by the daemon and by rooflinectl. Thread-safe. */
#ifndef RL_API_TOKEN_H
#define RL_API_TOKEN_H

#include "base/error.h"

enum { RL_TOKEN_SIZE = 44 /* 43 characters */, RL_TOKEN_HASH_SIZE = 65 /* 64 hexadecimal digits */ };

/* Writes a new token into token[RL_TOKEN_SIZE]. */
int rl_token_generate(char *token, rl_error *err);
/* Writes the token's hash into hash[RL_TOKEN_HASH_SIZE]. Any text has a hash; the store knows which hashes are valid. */
int rl_token_hash(const char *token, char *hash, rl_error *err);
/* Checks that a token's name is not empty, is UTF-8, and has no control characters, which a terminal would interpret. Fails
 * with RL_INPUT otherwise. */
int rl_token_check_name(const char *name, rl_error *err);

#endif
