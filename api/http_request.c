/* Reads headers and query parameters through MHD, and decodes the query with the route's field table. */
#include "api/http_request.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "api/http_syntax.h"
#include "api/server_internal.h"
#include "base/clock.h"
#include "base/json_members.h"

void rl_http_request_release_response(rl_http_request *request) {
  if (request->cached_body != NULL) rl_body_cache_release(request->server->body_cache, request->cached_body);
  else if (request->response != NULL) MHD_destroy_response(request->response);
  request->cached_body = NULL;
  request->response = NULL;
}

typedef struct ended_upload {
  rl_pool_task task;
  rl_upload *upload;
} ended_upload;

static void run_end_of_upload(rl_pool_task *task) {
  ended_upload *ended = (ended_upload *)task; /* the task is its first member */
  rl_upload_end(ended->upload);
  free(ended);
}

/* Deletes the file of an upload whose client has disconnected. A thread of RL_POOL_UPLOAD does so, because deleting a large file
 * takes long. */
static void end_upload(rl_http_request *request) {
  if (request->upload == NULL) return;
  ended_upload *ended = calloc(1, sizeof *ended);
  if (ended != NULL) *ended = (ended_upload){.task.run = run_end_of_upload, .upload = request->upload};
  if (ended != NULL && rl_request_pools_continue(request->server->pools, RL_POOL_UPLOAD, &ended->task)) return;
  rl_upload_end(request->upload); /* the pools have stopped, or memory is exhausted */
  free(ended);
}

void rl_http_request_free(rl_http_request *request) {
  if (request == NULL) return;
  end_upload(request);
  rl_http_request_release_response(request);
  free(request->cache_key);
  free(request->body);
  free(request);
}

const char *rl_http_request_header(const rl_http_request *request, const char *name) {
  return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

const char *rl_http_request_parameter(const rl_http_request *request, const char *name) {
  return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}

bool rl_http_request_parameter_exceeds(const rl_http_request *request, const char *name, int64_t maximum) {
  const char *text = rl_http_request_parameter(request, name);
  int64_t value;
  return text != NULL && rl_decimal_parse(text, &value) && value > maximum;
}

int rl_http_request_fail_parameter(rl_http_request *request, rl_error *err, const char *name, const char *message) {
  char pointer[sizeof err->json_pointer];
  snprintf(pointer, sizeof pointer, "/%s", name);
  request->parameter_error = true;
  return rl_fail_at(err, pointer, "%s %s", name, message);
}

typedef struct query_object {
  const rl_field *table;
  cJSON *object;
  bool failed; /* a value contains a NUL byte, or memory was exhausted */
} query_object;

/* Returns a JSON number if the field is numeric and text is a decimal number. Otherwise returns a JSON string; rl_fields_decode
 * refuses it if the field is numeric. */
static cJSON *parameter_json(const rl_field *table, const char *name, const char *text) {
  for (const rl_field *field = table; field->name != NULL; field++)
    if (strcmp(field->name, name) == 0 && (field->type == RL_FIELD_INT || field->type == RL_FIELD_REAL)) {
      int64_t value;
      bool negative = text[0] == '-';
      if (rl_decimal_parse(text + negative, &value)) return cJSON_CreateNumber((double)(negative ? -value : value));
    }
  return cJSON_CreateString(text);
}

static enum MHD_Result add_parameter(void *context, enum MHD_ValueKind kind, const char *name, size_t name_size, const char *text,
                                     size_t size) {
  query_object *query = context;
  (void)kind;
  if (strlen(name) != name_size || (text != NULL && strlen(text) != size)) query->failed = true;
  cJSON *value = parameter_json(query->table, name, text != NULL ? text : "");
  if (value == NULL || !cJSON_AddItemToObject(query->object, name, value)) {
    cJSON_Delete(value);
    query->failed = true;
  }
  return MHD_YES;
}

int rl_http_request_parse_query(rl_http_request *request, void *out, size_t size, rl_error *err) {
  static const rl_field no_fields[] = {{0}};
  const rl_field *table = request->route->query != NULL ? request->route->query : no_fields;
  RL_CLEANUP(rl_json_cleanup) cJSON *object = cJSON_CreateObject();
  query_object query = {.table = table, .object = object, .failed = object == NULL};
  if (object != NULL) MHD_get_connection_values_n(request->connection, MHD_GET_ARGUMENT_KIND, add_parameter, &query);
  if (query.failed) return rl_http_request_fail_parameter(request, err, "", "the query can't be read");
  request->parameter_error = true; /* any error from here on concerns a parameter */
  if (rl_fields_decode(table, object, "", out, size, err) < 0) return -1;
  request->parameter_error = false;
  return 0;
}

int rl_http_request_parse_instant(rl_http_request *request, const char *name, const char *text, int64_t *ns, rl_error *err) {
  if (rl_instant_parse(text, ns) < 0)
    return rl_http_request_fail_parameter(request, err, name, "must be an RFC 3339 instant in UTC, as 2026-01-31T12:00:00Z");
  return 0;
}
