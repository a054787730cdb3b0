/* Who may ask: a bearer token, or the session cookie that the page got for one. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/internal.h"
#include "api/token.h"
#include "base/clock.h"

#define COOKIE "rooflined_session"

static const char *bearer(const rl_call *call) {
  const char *header = rl_call_header(call, "Authorization");
  if (header == NULL || strncasecmp(header, "Bearer ", 7) != 0) return NULL;
  return header + 7 + strspn(header + 7, " ");
}

static const char *session_id(const rl_call *call) {
  return MHD_lookup_connection_value(call->connection, MHD_COOKIE_KIND, COOKIE);
}

int rl_credential_holds(rl_server *server, const rl_credential *shown, bool *holds, rl_error *err) {
  char hash[RL_TOKEN_HASH_SIZE];
  memcpy(hash, shown->hash, sizeof hash);
  bool known = shown->session[0] == '\0' || rl_session_find(server->sessions, rl_monotonic_ns(), shown->session, hash);
  if (known && rl_store_token_known(server->store, hash, &known, err) < 0) return -1;
  *holds = known;
  return 0;
}

static int token_shown(rl_call *call, bool *known, rl_error *err) {
  const char *token = bearer(call);
  call->shown = (rl_credential){0};
  if (token == NULL) return 0;
  if (rl_token_hash(token, call->shown.hash, err) < 0) return -1;
  return rl_credential_holds(call->server, &call->shown, known, err);
}

static int session_shown(rl_call *call, bool *known, rl_error *err) {
  const char *session = session_id(call);
  call->shown = (rl_credential){0};
  if (session == NULL || strlen(session) >= sizeof call->shown.session) return 0;
  strcpy(call->shown.session, session);
  return rl_credential_holds(call->server, &call->shown, known, err);
}

int rl_call_token(rl_call *call, bool *came, rl_error *err) {
  bool known = false;
  if (token_shown(call, &known, err) < 0 || (!known && session_shown(call, &known, err) < 0)) return -1;
  *came = known;
  return 0;
}

int rl_call_authorize(rl_call *call, rl_error *err) {
  bool known = !call->server->token_needed || call->route->open;
  if (!known && rl_call_token(call, &known, err) < 0) return -1;
  if (known) return 0;
  return rl_fail(err, RL_HTTP, 401, "Send a token of `rooflinectl token` as `Authorization: Bearer TOKEN`, or log in.");
}

static int reply_cookie(rl_call *call, const char *id, int seconds, rl_error *err) {
  char cookie[192];
  bool secure = call->server->certificate != NULL || call->server->config->behind_proxy;
  struct MHD_Response *response = rl_response_empty();
  snprintf(cookie, sizeof cookie, COOKIE "=%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Strict%s", id, seconds,
           secure ? "; Secure" : "");
  if (response != NULL) rl_header(response, "Set-Cookie", cookie);
  return rl_reply(call, 204, response, err);
}

typedef struct login {
  char token[128];
} login;
static const rl_field login_fields[] = {
    RL_FIELD(login, token, RL_FIELD_TEXT, .required = true, .summary = "A token of `rooflinectl token`"), {0}};

int rl_handle_login(rl_call *call, rl_error *err) {
  login body = {0};
  char id[RL_SESSION_ID_SIZE], hash[RL_TOKEN_HASH_SIZE];
  bool known;
  if (rl_fields_parse(login_fields, call->body != NULL ? call->body : "", call->length, &body, sizeof body, err) < 0) return -1;
  if (rl_token_hash(body.token, hash, err) < 0 || rl_store_token_known(call->server->store, hash, &known, err) < 0) return -1;
  if (!known) return rl_fail(err, RL_HTTP, 401, "This token is not known.");
  rl_session_begin(call->server->sessions, rl_monotonic_ns(), hash, id);
  return reply_cookie(call, id, RL_SESSION_S, err);
}

int rl_handle_logout(rl_call *call, rl_error *err) {
  const char *session = session_id(call);
  if (session != NULL) rl_session_end(call->server->sessions, session);
  return reply_cookie(call, "", 0, err);
}
