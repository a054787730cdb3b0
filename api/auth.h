/* Authorization of calls: by a bearer token, or by the login session that the web page got for a token. */
#ifndef RL_API_AUTH_H
#define RL_API_AUTH_H

#include "api/call.h"

/* -1 (RL_HTTP 401) when the route requires a token and the call has no valid one. */
int rl_call_authorize(rl_call *call, rl_error *err);
/* Sets *found: whether the call has a valid credential; if so, call->credential holds it. -1 when the store can't be read. */
int rl_call_find_credential(rl_call *call, bool *found, rl_error *err);
/* Sets *valid: whether the credential is still valid (not revoked, logged out or expired). -1 when the store can't be read. */
int rl_credential_check(rl_server *server, const rl_credential *credential, bool *valid, rl_error *err);

#endif
