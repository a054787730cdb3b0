#include "api/reply.h"

#include <stdio.h>
#include <string.h>

#include "api/problem_document.h"
#include "base/log.h"

/* Every response has these headers, which limit what a browser does with it. */
static const struct {
  const char *name, *value;
} security_headers[] = {
    {"Content-Security-Policy",
     "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; object-src 'none'; "
     "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
};

void rl_response_add_header(struct MHD_Response *response, const char *name, const char *value) {
  MHD_add_response_header(response, name, value);
}

struct MHD_Response *rl_response_text(char *text, size_t length, const char *type) {
  if (text == NULL) return NULL;
  struct MHD_Response *response = MHD_create_response_from_buffer(length, text, MHD_RESPMEM_MUST_FREE);
  if (response == NULL) free(text);
  else rl_response_add_header(response, "Content-Type", type);
  return response;
}

struct MHD_Response *rl_response_empty(void) {
  return MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
}

int rl_reply(rl_call *call, int status, struct MHD_Response *response, rl_error *err) {
  if (response == NULL) return rl_fail(err, RL_SYS, 0, "out of memory for a response");
  for (size_t i = 0; i < sizeof security_headers / sizeof *security_headers; i++)
    rl_response_add_header(response, security_headers[i].name, security_headers[i].value);
  if (MHD_get_response_header(response, "Cache-Control") == NULL) rl_response_add_header(response, "Cache-Control", "no-store");
  enum MHD_Result queued = MHD_queue_response(call->connection, (unsigned)status, response);
  call->replied = true;
  call->status = status;
  MHD_destroy_response(response);
  return queued == MHD_YES ? 0 : rl_fail(err, RL_SYS, 0, "the connection takes no response");
}

int rl_reply_text(rl_call *call, int status, char *text, const char *type, rl_error *err) {
  return rl_reply(call, status, rl_response_text(text, text != NULL ? strlen(text) : 0, type), err);
}

int rl_reply_json(rl_call *call, int status, cJSON *document, rl_error *err) {
  char *text = cJSON_PrintUnformatted(document);
  cJSON_Delete(document);
  return rl_reply_text(call, status, text, "application/json", err);
}

static void log_internal_error(const rl_call *call) {
  const rl_error *cause = &call->err;
  rl_log(RL_LOG_ERROR, "%s %s: %s error %d: %s", call->method, call->path, rl_domain_name(cause->domain), cause->code,
         cause->message);
}

static void add_problem_headers(struct MHD_Response *response, const rl_problem_kind *kind, const char *allow) {
  char seconds[16];
  if (allow[0] != '\0') rl_response_add_header(response, "Allow", allow);
  if (kind->status == 401) rl_response_add_header(response, "WWW-Authenticate", "Bearer realm=\"rooflined\"");
  if (kind->retry_after_s == 0) return;
  snprintf(seconds, sizeof seconds, "%d", kind->retry_after_s);
  rl_response_add_header(response, "Retry-After", seconds);
}

int rl_reply_problem(rl_call *call, rl_error *err) {
  rl_problem problem = rl_problem_of_error(&call->err, call->parameter_error);
  const rl_problem_kind *kind = &rl_problem_kinds[problem];
  if (problem == RL_PROBLEM_INTERNAL || problem == RL_PROBLEM_STORAGE_FULL) log_internal_error(call);
  char *text = rl_problem_print(problem, &call->err, call->parameter_error);
  struct MHD_Response *response = rl_response_text(text, text != NULL ? strlen(text) : 0, "application/problem+json");
  if (response != NULL) add_problem_headers(response, kind, call->allow);
  return rl_reply(call, kind->status, response, err);
}
