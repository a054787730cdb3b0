/* Sets the response of a request; a problem replaces the response that a handler has set. */
#include "api/reply.h"

#include <stdio.h>
#include <string.h>

#include "api/cached_reply.h"
#include "api/problem_document.h"
#include "base/log.h"

int rl_reply(rl_http_request *request, int status, struct MHD_Response *response, rl_error *err) {
  if (response == NULL) return rl_fail(err, RL_ERRNO, 0, "out of memory for a response");
  rl_response_add_security_headers(response);
  if (MHD_get_response_header(response, "Cache-Control") == NULL) rl_response_add_header(response, "Cache-Control", "no-store");
  request->response = response;
  request->status = status;
  return 0;
}

int rl_reply_text(rl_http_request *request, int status, char *text, const char *content_type, rl_error *err) {
  if (status == 200 && request->cache_key != NULL) return rl_cached_reply_make(request, text, content_type, err);
  return rl_reply(request, status, rl_response_text(text, text != NULL ? strlen(text) : 0, content_type), err);
}

int rl_reply_json(rl_http_request *request, int status, cJSON *document, rl_error *err) {
  char *text = cJSON_PrintUnformatted(document);
  cJSON_Delete(document);
  return rl_reply_text(request, status, text, "application/json", err);
}

int rl_reply_accepted(rl_http_request *request, const char *location, bool is_replayed, cJSON *document, rl_error *err) {
  if (rl_reply_json(request, 202, document, err) < 0) return -1;
  rl_response_add_header(request->response, "Location", location);
  if (is_replayed) rl_response_add_header(request->response, "Idempotent-Replayed", "true");
  return 0;
}

static void log_internal_error(const rl_http_request *request) {
  const rl_error *cause = &request->err;
  rl_log(RL_LOG_ERROR, "%s %s: %s error %d: %s", request->method, request->path, rl_domain_name(cause->domain), cause->code,
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

int rl_reply_problem(rl_http_request *request, rl_error *err) {
  rl_problem problem = rl_problem_of_error(&request->err, request->parameter_error);
  const rl_problem_kind *kind = &rl_problem_kinds[problem];
  if (problem == RL_PROBLEM_INTERNAL || problem == RL_PROBLEM_STORAGE_FULL) log_internal_error(request);
  char *text = rl_problem_print(problem, &request->err, request->parameter_error);
  struct MHD_Response *response = rl_response_text(text, text != NULL ? strlen(text) : 0, "application/problem+json");
  if (response != NULL) add_problem_headers(response, kind, request->allow);
  return rl_reply(request, kind->status, response, err);
}
