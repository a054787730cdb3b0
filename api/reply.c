/* Ways to reply. Every response carries the headers that keep a browser from doing more with it than is meant. */
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "api/internal.h"
#include "base/log.h"

static const struct {
  const char *name, *value;
} hardening[] = {
    {"Content-Security-Policy",
     "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; object-src 'none'; "
     "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
};

void rl_header(struct MHD_Response *response, const char *name, const char *value) {
  MHD_add_response_header(response, name, value);
}

struct MHD_Response *rl_response_text(char *text, size_t length, const char *type) {
  if (text == NULL) return NULL;
  struct MHD_Response *response = MHD_create_response_from_buffer(length, text, MHD_RESPMEM_MUST_FREE);
  if (response == NULL) free(text);
  else rl_header(response, "Content-Type", type);
  return response;
}

struct MHD_Response *rl_response_empty(void) {
  return MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
}

int rl_reply(rl_call *call, int status, struct MHD_Response *response, rl_error *err) {
  if (response == NULL) return rl_fail(err, RL_SYS, 0, "out of memory for a response");
  for (size_t i = 0; i < sizeof hardening / sizeof *hardening; i++) rl_header(response, hardening[i].name, hardening[i].value);
  if (MHD_get_response_header(response, "Cache-Control") == NULL) rl_header(response, "Cache-Control", "no-store");
  enum MHD_Result taken = MHD_queue_response(call->connection, (unsigned)status, response);
  call->answered = true;
  call->status = status;
  MHD_destroy_response(response);
  return taken == MHD_YES ? 0 : rl_fail(err, RL_SYS, 0, "the connection takes no response");
}

int rl_reply_text(rl_call *call, int status, char *text, const char *type, rl_error *err) {
  return rl_reply(call, status, rl_response_text(text, text != NULL ? strlen(text) : 0, type), err);
}

int rl_reply_json(rl_call *call, int status, cJSON *document, rl_error *err) {
  char *text = cJSON_PrintUnformatted(document);
  cJSON_Delete(document);
  return rl_reply_text(call, status, text, "application/json", err);
}

int rl_reply_problem(rl_call *call, rl_error *err) {
  rl_error cause = call->err;
  rl_problem problem = rl_problem_of(&cause, call->parameter);
  const rl_problem_kind *kind = &rl_problem_kinds[problem];
  if (problem == RL_PROBLEM_INTERNAL || problem == RL_PROBLEM_STORAGE_FULL)
    rl_log(RL_LOG_ERROR, "%s %s: %s error %d: %s", call->method, call->path, rl_domain_name(cause.domain), cause.code,
           cause.message);
  char *text = rl_problem_print(problem, &cause, call->parameter), seconds[16];
  struct MHD_Response *response = rl_response_text(text, text != NULL ? strlen(text) : 0, "application/problem+json");
  if (response != NULL) {
    if (call->allow[0] != '\0') rl_header(response, "Allow", call->allow);
    if (kind->status == 401) rl_header(response, "WWW-Authenticate", "Bearer realm=\"rooflined\"");
    if (kind->retry_after_s > 0) {
      snprintf(seconds, sizeof seconds, "%d", kind->retry_after_s);
      rl_header(response, "Retry-After", seconds);
    }
  }
  return rl_reply(call, kind->status, response, err);
}

void rl_etag_of(const void *data, size_t size, char *etag) {
  unsigned char digest[16];
  char hex[2 * sizeof digest + 1];
  crypto_generichash(digest, sizeof digest, data, size, NULL, 0);
  sodium_bin2hex(hex, sizeof hex, digest, sizeof digest);
  snprintf(etag, RL_ETAG_SIZE, "\"%s\"", hex);
}
