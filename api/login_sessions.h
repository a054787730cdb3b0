/* Login sessions of the web page. A browser sends a token once and gets a cookie with a random session id, which it sends with
 * each later request. A session ends when its token is revoked. Sessions are kept in memory only, so a restart of the daemon ends
 * all of them. There are at most RL_LOGIN_SESSIONS_MAX sessions. If all are in use, a new one replaces the oldest session of the
 * token that has the most sessions, the new one included. Thread-safe. */
#ifndef RL_API_LOGIN_SESSIONS_H
#define RL_API_LOGIN_SESSIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "api/token.h"
#include "base/cleanup.h"

enum { RL_LOGIN_SESSION_ID_SIZE = 44, RL_LOGIN_SESSIONS_MAX = 64, RL_LOGIN_SESSION_LIFETIME_S = 12 * 3600 };

typedef struct rl_login_sessions rl_login_sessions;

rl_login_sessions *rl_login_sessions_new(void); /* NULL if memory is exhausted */
void rl_login_sessions_free(rl_login_sessions *sessions);
/* Begins a session for the token with this hash, and writes its id into id[RL_LOGIN_SESSION_ID_SIZE]. The session ends
 * RL_LOGIN_SESSION_LIFETIME_S after now_ns (rl_monotonic_ns). */
void rl_login_session_begin(rl_login_sessions *sessions, int64_t now_ns, const char *token_hash, char *id);
/* Returns true if the session exists, and writes its token's hash into token_hash[RL_TOKEN_HASH_SIZE]. The caller must check that
 * the token has not been revoked. */
bool rl_login_session_find(rl_login_sessions *sessions, int64_t now_ns, const char *id, char *token_hash);
/* Returns the number of sessions that have not ended. */
int rl_login_sessions_count(rl_login_sessions *sessions, int64_t now_ns);
void rl_login_session_end(rl_login_sessions *sessions, const char *id);

#endif
