/* Sessions of the page: a random id in a cookie stands for a token that was shown once, and ends with it. In memory only, so a
 * restart logs everybody out; bounded, the oldest goes first. Thread-safe. */
#ifndef RL_API_SESSIONS_H
#define RL_API_SESSIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "api/token.h"
#include "base/cleanup.h"

enum { RL_SESSION_ID_SIZE = 44, RL_SESSIONS_MAX = 64, RL_SESSION_S = 12 * 3600 };

typedef struct rl_sessions rl_sessions;

rl_sessions *rl_sessions_new(void); /* NULL when memory is out */
void rl_sessions_free(rl_sessions *sessions);
/* A new one of the token with this hash into id[RL_SESSION_ID_SIZE]; ends RL_SESSION_S after now_ns (rl_monotonic_ns). */
void rl_session_begin(rl_sessions *sessions, int64_t now_ns, const char *hash, char *id);
/* Is there such a session? Its token's hash, which may have been revoked since, into hash[RL_TOKEN_HASH_SIZE]. */
bool rl_session_find(rl_sessions *sessions, int64_t now_ns, const char *id, char *hash);
int rl_sessions_count(rl_sessions *sessions, int64_t now_ns); /* that have not ended */
void rl_session_end(rl_sessions *sessions, const char *id);

#endif
