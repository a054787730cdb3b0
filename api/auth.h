/* Checks that a request has a valid credential: a bearer token, or a login session, which the web page gets in exchange for a
 * token. dispatch.c calls this module before the handler; event streams check their credential again while they are open. */
#ifndef RL_API_AUTH_H
#define RL_API_AUTH_H

#include "api/http_request.h"

/* Fails with RL_HTTP 401 if the route requires a credential and the request has no valid one. */
int rl_http_request_authorize(rl_http_request *request, rl_error *err);
/* Returns true if the store's cache in memory shows that the request has a valid credential; copies it to request->credential.
 * Executes no query. */
bool rl_http_request_has_known_credential(rl_http_request *request);
/* Sets *found to true if the request has a valid credential, and copies the credential to request->credential. Returns -1 if
 * the store can't be read. */
int rl_http_request_find_credential(rl_http_request *request, bool *found, rl_error *err);
/* Sets *valid to false if the token is unknown or was revoked, or if the login session has expired or was ended by a logout; else
 * to true. Returns -1 if the store can't be read. */
int rl_credential_check(rl_server *server, const rl_credential *credential, bool *valid, rl_error *err);
/* Returns true if the store's cache in memory shows that the credential is valid. Executes no query. */
bool rl_credential_is_known(rl_server *server, const rl_credential *credential);

#endif
