/* Defines the table of problems, and maps an error's domain and code to a problem. */
#include "api/problem_document.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>

const rl_problem_kind rl_problem_kinds[RL_PROBLEM_COUNT] = {
    [RL_PROBLEM_BAD_REQUEST] = {.code = "bad_request", .title = "The HTTP request is malformed", .status = 400},
    [RL_PROBLEM_BAD_JSON] = {.code = "bad_json", .title = "The body is not valid JSON", .status = 400},
    [RL_PROBLEM_INVALID_FIELD] = {.code = "invalid_field", .title = "A field of the body is not valid", .status = 400},
    [RL_PROBLEM_INVALID_PARAMETER] = {.code = "invalid_parameter", .title = "A parameter is not valid", .status = 400},
    [RL_PROBLEM_UNAUTHORIZED] = {.code = "unauthorized", .title = "A token is required", .status = 401},
    [RL_PROBLEM_FORBIDDEN] = {.code = "forbidden", .title = "The daemon does not allow this", .status = 403},
    [RL_PROBLEM_NOT_FOUND] = {.code = "not_found", .title = "Not found", .status = 404},
    [RL_PROBLEM_METHOD_NOT_ALLOWED] = {.code = "method_not_allowed",
                                       .title = "This path does not allow the method",
                                       .status = 405},
    [RL_PROBLEM_JOB_FINISHED] = {.code = "job_finished", .title = "The job has already finished", .status = 409},
    [RL_PROBLEM_BODY_TOO_LARGE] = {.code = "body_too_large", .title = "The body is too large", .status = 413},
    [RL_PROBLEM_UNSUPPORTED_MEDIA_TYPE] = {.code = "unsupported_media_type",
                                           .title = "The media type of the body is not supported",
                                           .status = 415},
    [RL_PROBLEM_FOREIGN_HOST] = {.code = "foreign_host", .title = "The Host header names another host", .status = 421},
    [RL_PROBLEM_IDEMPOTENCY_MISMATCH] = {.code = "idempotency_mismatch",
                                         .title = "The Idempotency-Key was used with another request",
                                         .status = 422},
    [RL_PROBLEM_QUEUE_FULL] = {.code = "queue_full", .title = "The queue is full", .status = 429, .retry_after_s = 10},
    [RL_PROBLEM_INTERNAL] = {.code = "internal", .title = "Internal error", .status = 500},
    [RL_PROBLEM_UNAVAILABLE] = {.code = "unavailable", .title = "Temporarily unavailable", .status = 503, .retry_after_s = 5},
    [RL_PROBLEM_BUSY] = {.code = "busy", .title = "Too many requests at once", .status = 503, .retry_after_s = 1},
    [RL_PROBLEM_DEADLINE] = {.code = "deadline_exceeded",
                             .title = "The request took too long",
                             .status = 503,
                             .retry_after_s = 5},
    [RL_PROBLEM_STORAGE_FULL] = {.code = "storage_full",
                                 .title = "There is no space left in the state folder",
                                 .status = 503,
                                 .retry_after_s = 10},
    [RL_PROBLEM_STORAGE_LOCKED] = {.code = "storage_locked",
                                   .title = "Another program holds the database locked",
                                   .status = 503,
                                   .retry_after_s = 1},
    [RL_PROBLEM_SUITE_RUN_ENDED] = {.code = "suite_run_ended", .title = "The suite run has already ended", .status = 409},
    [RL_PROBLEM_BASELINE_EXISTS] = {.code = "baseline_exists", .title = "The suite has a baseline of this name", .status = 409},
    [RL_PROBLEM_NOT_ELIGIBLE] = {.code = "not_eligible", .title = "The suite run can't be a baseline", .status = 422},
    [RL_PROBLEM_MALFORMED_SUITE] = {.code = "malformed_suite", .title = "The suite's file is malformed", .status = 422},
};

static bool is_storage_full(const rl_error *err) {
  return (err->domain == RL_STORAGE && err->code == RL_STORAGE_FULL) ||
         (err->domain == RL_ERRNO && (err->code == ENOSPC || err->code == EDQUOT));
}

rl_problem rl_problem_of_error(const rl_error *err, bool parameter_error) {
  if (err->domain == RL_INPUT)
    return parameter_error                ? RL_PROBLEM_INVALID_PARAMETER
           : err->json_pointer[0] != '\0' ? RL_PROBLEM_INVALID_FIELD
                                          : RL_PROBLEM_BAD_JSON;
  if (err->domain == RL_HTTP)
    for (int i = 0; i < RL_PROBLEM_COUNT; i++)
      if (rl_problem_kinds[i].status == err->code) return (rl_problem)i;
  if (err->domain == RL_SUITE) return (rl_problem)(RL_PROBLEM_SUITE_RUN_ENDED + err->code - RL_SUITE_ENDED);
  if (err->domain == RL_LIMIT) return err->code == RL_LIMIT_DEADLINE ? RL_PROBLEM_DEADLINE : RL_PROBLEM_BUSY;
  return is_storage_full(err)        ? RL_PROBLEM_STORAGE_FULL
         : rl_is_storage_locked(err) ? RL_PROBLEM_STORAGE_LOCKED
                                     : RL_PROBLEM_INTERNAL;
}

/* Returns what the client can do. The messages of a full disk and of internal errors name files of the daemon, so only the log
 * has them. */
static const char *detail_of(rl_problem problem, const rl_error *err) {
  if (problem == RL_PROBLEM_STORAGE_FULL)
    return "Free space in the file system of the daemon's state folder, then send the request again.";
  return problem == RL_PROBLEM_INTERNAL ? "The daemon's log has the reason." : err->message;
}

char *rl_problem_print(rl_problem problem, const rl_error *err, bool parameter_error) {
  const rl_problem_kind *kind = &rl_problem_kinds[problem];
  char type[96];
  snprintf(type, sizeof type, "urn:rooflined:problem:%s", kind->code);
  cJSON *document = cJSON_CreateObject();
  cJSON_AddStringToObject(document, "type", type);
  cJSON_AddStringToObject(document, "title", kind->title);
  cJSON_AddNumberToObject(document, "status", kind->status);
  cJSON_AddStringToObject(document, "code", kind->code);
  cJSON_AddStringToObject(document, "detail", detail_of(problem, err));
  if (parameter_error) cJSON_AddStringToObject(document, "parameter", err->json_pointer + (err->json_pointer[0] == '/'));
  else if (err->domain == RL_INPUT || err->json_pointer[0] != '\0')
    cJSON_AddStringToObject(document, "pointer", err->json_pointer);
  char *text = cJSON_PrintUnformatted(document);
  cJSON_Delete(document);
  return text;
}
