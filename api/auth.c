/* Finds the credential of a request (Authorization header, else session cookie), and checks it against the store. Also contains
 * the handlers of /login and /logout. */
#include "api/auth.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/handlers.h"
#include "api/reply.h"
#include "api/server_internal.h"
#include "base/clock.h"

#define COOKIE_NAME "rooflined_session"

static const char *bearer_token(const rl_http_request *request) {
  const char *header = rl_http_request_header(request, "Authorization");
  if (header == NULL || strncasecmp(header, "Bearer ", 7) != 0) return NULL;
  return header + 7 + strspn(header + 7, " ");
}

static const char *cookie_session_id(const rl_http_request *request) {
  return MHD_lookup_connection_value(request->connection, MHD_COOKIE_KIND, COOKIE_NAME);
}

/* Copies to token_hash the hash of the credential's token, or of the token with which the credential's login session began.
 * Returns false if this session has ended. */
static bool find_token_hash(rl_server *server, const rl_credential *credential, char token_hash[RL_TOKEN_HASH_SIZE]) {
  memcpy(token_hash, credential->token_hash, RL_TOKEN_HASH_SIZE);
  return credential->session_id[0] == '\0' ||
         rl_login_session_find(server->login_sessions, rl_monotonic_ns(), credential->session_id, token_hash);
}

int rl_credential_check(rl_server *server, const rl_credential *credential, bool *valid, rl_error *err) {
  char token_hash[RL_TOKEN_HASH_SIZE];
  bool known = find_token_hash(server, credential, token_hash);
  if (known && rl_store_has_token(server->store, token_hash, &known, err) < 0) return -1;
  *valid = known;
  return 0;
}

bool rl_credential_is_known(rl_server *server, const rl_credential *credential) {
  char token_hash[RL_TOKEN_HASH_SIZE];
  return find_token_hash(server, credential, token_hash) && rl_store_has_cached_token(server->store, token_hash);
}

/* read_bearer_token and read_session_cookie set request->credential and return 1 if the request contains a bearer token or a
 * session cookie respectively; else they return 0. They don't check whether the credential is valid. read_bearer_token returns -1
 * if it can't hash the token. */
static int read_bearer_token(rl_http_request *request, rl_error *err) {
  const char *token = bearer_token(request);
  request->credential = (rl_credential){0};
  if (token == NULL) return 0;
  return rl_token_hash(token, request->credential.token_hash, err) < 0 ? -1 : 1;
}

static int read_session_cookie(rl_http_request *request) {
  const char *session_id = cookie_session_id(request);
  request->credential = (rl_credential){0};
  if (session_id == NULL || strlen(session_id) >= sizeof request->credential.session_id) return 0;
  strcpy(request->credential.session_id, session_id);
  return 1;
}

int rl_http_request_find_credential(rl_http_request *request, bool *found, rl_error *err) {
  bool valid = false;
  int has_token = read_bearer_token(request, err);
  if (has_token < 0 || (has_token && rl_credential_check(request->server, &request->credential, &valid, err) < 0)) return -1;
  if (!valid && read_session_cookie(request) && rl_credential_check(request->server, &request->credential, &valid, err) < 0)
    return -1;
  *found = valid;
  return 0;
}

bool rl_http_request_has_known_credential(rl_http_request *request) {
  rl_error ignored;
  return (read_bearer_token(request, &ignored) > 0 && rl_credential_is_known(request->server, &request->credential)) ||
         (read_session_cookie(request) && rl_credential_is_known(request->server, &request->credential));
}

int rl_http_request_authorize(rl_http_request *request, rl_error *err) {
  bool authorized = !request->server->token_required || request->route->is_public;
  if (!authorized && rl_http_request_find_credential(request, &authorized, err) < 0) return -1;
  if (authorized) return 0;
  return rl_fail(err, RL_HTTP, 401, "Log in, or send a token made by `rooflinectl token` as `Authorization: Bearer TOKEN`.");
}

static int reply_cookie(rl_http_request *request, const char *session_id, int max_age_s, rl_error *err) {
  char cookie[192];
  bool secure = request->server->certificate != NULL || request->server->config->behind_proxy;
  struct MHD_Response *response = rl_response_empty();
  snprintf(cookie, sizeof cookie, COOKIE_NAME "=%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Strict%s", session_id, max_age_s,
           secure ? "; Secure" : "");
  if (response != NULL) rl_response_add_header(response, "Set-Cookie", cookie);
  return rl_reply(request, 204, response, err);
}

typedef struct login_request {
  char token[128];
} login_request;

static const rl_field login_fields[] = {
    RL_FIELD(login_request, token, RL_FIELD_TEXT, .required = true, .summary = "A token made by `rooflinectl token`"), {0}};

int rl_handle_log_in(rl_http_request *request, rl_error *err) {
  login_request login = {0};
  const char *body = request->body != NULL ? request->body : "";
  char session_id[RL_LOGIN_SESSION_ID_SIZE], token_hash[RL_TOKEN_HASH_SIZE];
  bool known;
  if (rl_fields_parse(login_fields, body, request->body_length, &login, sizeof login, err) < 0) return -1;
  if (rl_token_hash(login.token, token_hash, err) < 0) return -1;
  if (rl_store_has_token(request->server->store, token_hash, &known, err) < 0) return -1;
  if (!known) return rl_fail(err, RL_HTTP, 401, "The token is unknown or was revoked.");
  rl_login_session_begin(request->server->login_sessions, rl_monotonic_ns(), token_hash, session_id);
  return reply_cookie(request, session_id, RL_LOGIN_SESSION_LIFETIME_S, err);
}

int rl_handle_log_out(rl_http_request *request, rl_error *err) {
  const char *session_id = cookie_session_id(request);
  if (session_id != NULL) rl_login_session_end(request->server->login_sessions, session_id);
  return reply_cookie(request, "", 0, err);
}
