/* POST /imports. The body is a trace file. dispatch.c has written the body to the upload's file, except its last part, which is
 * still in memory. */
#include <stdio.h>
#include <string.h>

#include "api/handlers.h"
#include "api/server_internal.h"
#include "api/submission.h"
#include "request/labels.h"
#include "request/spec.h"

typedef struct import_query {
  int format; /* rl_trace_format */
  char file_name[RL_FILE_NAME_SIZE];
  int64_t deadline_s;
} import_query;

const rl_field rl_import_trace_query[] = {
    RL_FIELD(import_query, format, RL_FIELD_CHOICE, .names = rl_trace_format_names,
             .summary = "Format of the file; default auto: the first bytes determine it"),
    RL_FIELD(import_query, file_name, RL_FIELD_TEXT, .summary = "Name of the file, which the job shows"),
    RL_FIELD(import_query, deadline_s, RL_FIELD_INT, .minimum = 0, .maximum = 604800,
             .summary = "Seconds from the job's start to its end; default 0: the daemon's job_deadline_s"),
    {0}};

/* Writes the last part of the body to the upload's file. Sets size, SHA-256, upload id and detected format in *params
 * (rl_upload_finish). Refuses a file of a wrong format with status 415. */
static int finish_upload(rl_http_request *request, rl_imported_trace_params *params, rl_error *err) {
  rl_upload *upload = request->upload;
  if (request->body_length > 0 && rl_upload_write(upload, request->body, request->body_length, err) < 0) return -1;
  if (rl_upload_finish(upload, params, err) >= 0) return 0;
  if (err->domain == RL_INPUT) {
    err->domain = RL_HTTP;
    err->code = 415;
  }
  return -1;
}

/* The hash of the job's request stands for the body's hash: the request contains the hash of the file and the parameters of the
 * query. */
static int submit(rl_http_request *request, rl_job_spec *spec, const char *idempotency_key, int64_t *id, bool *existing,
                  rl_error *err) {
  char sha256[RL_SHA256_SIZE];
  rl_sha256(spec->request, strlen(spec->request), sha256);
  if (rl_queue_submit_job(request->server->queue, spec, idempotency_key, sha256, id, existing, err) < 0) return -1;
  if (!*existing) rl_upload_keep_file(request->upload);
  rl_upload_end(request->upload);
  request->upload = NULL;
  return 0;
}

int rl_handle_import_trace(rl_http_request *request, rl_error *err) {
  rl_server *server = request->server;
  import_query query = {.format = RL_TRACE_FORMAT_AUTO};
  rl_imported_trace_params params = {0};
  rl_job_spec spec = {0};
  rl_job_state state = RL_JOB_QUEUED;
  const char *idempotency_key;
  int64_t id;
  bool existing;
  if (atomic_load(&server->stopping)) return rl_fail(err, RL_HTTP, 503, "The daemon is stopping.");
  if (rl_http_request_parse_query(request, &query, sizeof query, err) < 0 ||
      rl_http_request_idempotency_key(request, &idempotency_key, err) < 0)
    return -1;
  if (rl_job_check_name(query.file_name, "file_name", "/file_name", err) < 0) {
    request->parameter_error = true;
    return -1;
  }
  params.format = query.format;
  memcpy(params.file_name, query.file_name, sizeof params.file_name);
  if (finish_upload(request, &params, err) < 0 || rl_job_spec_make_import(&params, query.deadline_s, &spec, err) < 0 ||
      submit(request, &spec, idempotency_key, &id, &existing, err) < 0)
    return -1;
  if (existing && rl_store_job_state(server->store, id, &state, err) < 0) return -1;
  return rl_http_request_reply_job(request, id, state, existing, err);
}
