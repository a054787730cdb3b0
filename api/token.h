/* Bearer tokens: 32 random bytes as base64url, shown once by `rooflinectl token`. Only the hash is kept (BLAKE2b-256 of the
 * token's text, in hexadecimal): a token has full entropy, so a slow password hash would add nothing, and looking the hash up
 * tells an attacker's clock nothing about the token. Shared by the daemon and rooflinectl. Thread-safe. */
#ifndef RL_API_TOKEN_H
#define RL_API_TOKEN_H

#include "base/error.h"

enum { RL_TOKEN_SIZE = 44 /* 43 characters */, RL_TOKEN_HASH_SIZE = 65 /* 64 hexadecimal digits */ };

/* A new token into token[RL_TOKEN_SIZE]. */
int rl_token_make(char *token, rl_error *err);
/* Its hash into hash[RL_TOKEN_HASH_SIZE]. Any text has a hash; only a known one opens anything. */
int rl_token_hash(const char *token, char *hash, rl_error *err);

#endif
