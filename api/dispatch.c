/* Stages of a request: headers, authorization, body, handler, reply. A refusal fills err, skips the other stages, and is sent as
 * a problem document. MHD calls rl_dispatch_continue after each stage that ran in a pool. */
#include "api/dispatch.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "api/auth.h"
#include "api/cached_reply.h"
#include "api/http_syntax.h"
#include "api/origin_check.h"
#include "api/reply.h"
#include "api/routes.h"
#include "api/server_internal.h"
#include "api/static_files.h"
#include "base/clock.h"

enum {
  MAX_DISCARDED_BODY_BYTES = 64 << 20, /* the body of a refused request is read and discarded up to this size, because many
                                          clients read the reply only after they have sent the body */
  /* Equals CONNECTION_MEMORY_BYTES in server.c, because MHD may already have read a body of this size */
  MAX_UNAUTHORIZED_BODY_BYTES = 32 << 10,
  UPLOAD_PART_BYTES = 1 << 20, /* part of an uploaded file that is collected in memory before a pool writes it */
  REPLY_TIMEOUT_S = 120        /* time for a client to read a reply; event streams have no limit */
};

static void refuse(rl_http_request *request, int status, const char *message) {
  rl_fail(&request->err, RL_HTTP, status, "%s", message);
  request->refused = true;
}

/* Returns the numeric address at which the client reached the server, NULL when unknown. */
static const char *local_address(const rl_http_request *request, char *text, size_t size) {
  struct sockaddr_storage address;
  socklen_t length = sizeof address;
  if (getsockname(request->socket, (struct sockaddr *)&address, &length) < 0) return NULL;
  return getnameinfo((struct sockaddr *)&address, length, text, (socklen_t)size, NULL, 0, NI_NUMERICHOST) == 0 ? text : NULL;
}

/* The headers that determine where the request ends, and the Host headers. */
typedef struct framing {
  int host_count, length_count, transfer_encoding_count;
  const char *length;
  bool lengths_differ, is_chunked;
} framing;

static enum MHD_Result collect_framing_header(void *context, enum MHD_ValueKind kind, const char *name, const char *value) {
  framing *found = context;
  (void)kind;
  if (strcasecmp(name, "Host") == 0) found->host_count++;
  if (strcasecmp(name, "Transfer-Encoding") == 0) {
    found->transfer_encoding_count++;
    found->is_chunked = strcasecmp(value, "chunked") == 0;
  }
  if (strcasecmp(name, "Content-Length") != 0) return MHD_YES;
  if (found->length_count++ == 0) found->length = value;
  else if (strcmp(found->length, value) != 0) found->lengths_differ = true;
  return MHD_YES;
}

/* Returns the reason if the end of the request is ambiguous; else NULL. Prevents request smuggling (RFC 9112, 11.2): if a proxy
 * and the daemon found different ends of one request, they would also see different next requests. */
static const char *framing_error(const framing *found) {
  if (found->lengths_differ) return "The Content-Length headers differ.";
  if (found->length_count > 0 && found->transfer_encoding_count > 0)
    return "The request must not have both a Content-Length and a Transfer-Encoding.";
  if (found->transfer_encoding_count > 1 || (found->transfer_encoding_count == 1 && !found->is_chunked))
    return "The only Transfer-Encoding that is accepted is chunked.";
  return NULL;
}

static bool check_syntax(rl_http_request *request) {
  framing found = {0};
  MHD_get_connection_values(request->connection, MHD_HEADER_KIND, collect_framing_header, &found);
  const char *message = framing_error(&found);
  request->must_close = message != NULL;
  if (message == NULL && request->too_many_parameters) message = "The query has more than 64 parameters.";
  if (message == NULL && found.host_count != 1) message = "The request must have one Host header.";
  if (message != NULL) refuse(request, 400, message);
  return !request->refused;
}

static bool is_own_host(const rl_http_request *request) {
  const rl_config *config = request->server->config;
  char local[64];
  return rl_host_is_allowed(rl_http_request_header(request, "Host"), config->address, local_address(request, local, sizeof local),
                            config->allowed_hosts);
}

static bool check_origin(rl_http_request *request) {
  if (!is_own_host(request)) {
    refuse(request, 421, "The Host header must name this daemon: loopback, its address, or one of allowed_hosts.");
  } else if (!rl_origin_is_allowed(rl_http_request_header(request, "Origin"), rl_http_request_header(request, "Host")) ||
             !rl_fetch_site_is_allowed(rl_http_request_header(request, "Sec-Fetch-Site"))) {
    refuse(request, 403, "The request comes from a page of another site.");
  }
  return !request->refused;
}

/* Sets request->route. Returns false if it has refused the request, or if the method is OPTIONS, which run_handler answers
 * without a route. */
static bool find_route(rl_http_request *request) {
  rl_path_values values = {0};
  request->route = rl_route_find(request->method, request->path, &values, request->allow, sizeof request->allow);
  request->id = values.id;
  memcpy(request->name, values.name, sizeof request->name);
  if (request->route != NULL) {
    request->allow[0] = '\0';
    return true;
  }
  if (request->allow[0] == '\0' && rl_static_file_exists(request->server, request->path))
    snprintf(request->allow, sizeof request->allow, "GET, HEAD");
  if (request->allow[0] == '\0') {
    refuse(request, 404, "No route has this path; /openapi.json lists the routes.");
    return false;
  }
  rl_allow_header_append(request->allow, sizeof request->allow, "OPTIONS");
  if (strcmp(request->method, "OPTIONS") != 0) refuse(request, 405, "The Allow header lists the methods of this path.");
  return false;
}

static bool takes_upload(const rl_http_request *request) { return request->route->body_limit == RL_BODY_UPLOAD; }

static void refuse_too_large(rl_http_request *request) {
  char detail[128];
  if (request->body_limit == 0) return refuse(request, 413, "This route takes no body.");
  const char *setting = request->route->body_limit == RL_BODY_CONFIGURED ? " (body_limit_bytes)" : "";
  if (takes_upload(request)) setting = " (import_limit_bytes)";
  snprintf(detail, sizeof detail, "The %s is larger than the limit, %lld bytes%s.", takes_upload(request) ? "trace" : "body",
           (long long)request->body_limit, setting);
  refuse(request, 413, detail);
}

static int64_t body_limit_of(const rl_http_request *request) {
  const rl_config *config = request->server->config;
  switch (request->route->body_limit) {
    case RL_BODY_CONFIGURED: return config->body_limit_bytes;
    case RL_BODY_UPLOAD: return config->import_limit_bytes;
    default: return request->route->body_limit;
  }
}

/* Returns the reason if a body of this media type is refused; else NULL. An uploaded file may have any type except that of a
 * form. */
static const char *media_type_error(const rl_http_request *request) {
  const char *type = rl_http_request_header(request, "Content-Type");
  if (takes_upload(request))
    return type == NULL || strncasecmp(type, "multipart/", 10) != 0
               ? NULL
               : "The body must be the file itself, not a form: curl --data-binary @FILE, or curl -X POST -T FILE.";
  return request->body_limit == 0 || rl_media_type_is_json(type) ? NULL : "The Content-Type must be application/json.";
}

static int fail_too_many_uploads(rl_error *err) {
  return rl_fail(err, RL_LIMIT, RL_LIMIT_BUSY, "Too many traces are being uploaded; try again later.");
}

/* length: of the body; -1: unknown. An upload takes its place among the uploads when its first part is complete, so that a silent
 * client takes none. Refuses a long upload before its body if there is no place now. */
static int check_upload(const rl_http_request *request, int64_t length, rl_error *err) {
  const rl_server *server = request->server;
  if (rl_supervisor_check_importer(server->supervisor, err) < 0) return -1;
  if ((length >= 0 && length < UPLOAD_PART_BYTES) ||
      rl_connections_have_resource(server->connections, RL_RESOURCE_UPLOADS, rl_monotonic_ns()))
    return 0;
  return fail_too_many_uploads(err);
}

static void begin_upload(rl_http_request *request, int64_t length) {
  request->refused = check_upload(request, length, &request->err) < 0 ||
                     rl_upload_begin(request->server->uploads, &request->upload, &request->err) < 0;
}

/* Checks Content-Length and Content-Type before the body is read. */
static void check_body_headers(rl_http_request *request) {
  const char *length = rl_http_request_header(request, "Content-Length");
  int64_t declared = 0;
  request->body_limit = body_limit_of(request);
  const char *wrong_type = media_type_error(request);
  if (length != NULL && (!rl_decimal_parse(length, &declared) || declared > request->body_limit)) refuse_too_large(request);
  else if (wrong_type != NULL) refuse(request, 415, wrong_type);
  else if (takes_upload(request)) begin_upload(request, length != NULL ? declared : -1);
}

static void authorize(rl_http_request *request) {
  if (rl_http_request_authorize(request, &request->err) < 0) request->refused = true;
  else if (!request->refused) check_body_headers(request); /* a body that was read before may have been refused */
}

static int reply_options(rl_http_request *request, rl_error *err) {
  struct MHD_Response *response = rl_response_empty();
  if (response != NULL) rl_response_add_header(response, "Allow", request->allow);
  return rl_reply(request, 204, response, err);
}

/* Refuses a request with query parameters if its route defines none. */
static int check_no_query(rl_http_request *request, rl_error *err) {
  char no_parameters = 0;
  if (request->route->query != NULL || request->route->ignores_query) return 0;
  return rl_http_request_parse_query(request, &no_parameters, 0, err);
}

static int run_handler(rl_http_request *request, rl_error *err) {
  if (request->refused) return -1; /* err, which is request->err, has the reason already */
  if (request->route == NULL) return reply_options(request, err);
  if (check_no_query(request, err) < 0) return -1;
  return request->route->handle(request, err);
}

static void reply(rl_http_request *request) {
  rl_error err;
  if (run_handler(request, &request->err) == 0 || request->response != NULL) return;
  rl_request_budget_explain(&request->budget, &request->err);
  (void)rl_reply_problem(request, &err);
}

/* --- stages ------------------------------------------------------------------------------------------------------------ */

static rl_http_request *request_of_task(rl_pool_task *task) {
  return (rl_http_request *)((char *)task - offsetof(rl_http_request, task));
}

static void run_authorization(rl_pool_task *task) { authorize(request_of_task(task)); }

static bool is_safe_method(const rl_http_request *request) { return strcmp(request->route->method, "GET") == 0; }

static rl_pool pool_of(const rl_http_request *request) {
  if (request->refused || request->route == NULL) return RL_POOL_INLINE;
  return request->route->is_heavy != NULL && request->route->is_heavy(request) ? RL_POOL_HEAVY : request->route->pool;
}

/* Runs the handler and makes the reply. A GET whose client disconnected while it was queued is skipped; other methods run,
 * because they change data. */
static void run_reply(rl_pool_task *task) {
  rl_http_request *request = request_of_task(task);
  rl_request_budget *budget = &request->budget;
  *budget = rl_request_budget_make(request->server, is_safe_method(request) ? request->socket : -1, request->handler_start_ns);
  rl_request_budget_begin(budget);
  if (atomic_load(&request->server->stopping)) refuse(request, 503, "The daemon is stopping.");
  else if (is_safe_method(request) && rl_request_budget_check(budget, &request->err) < 0) request->refused = true;
  else if (pool_of(request) == RL_POOL_HEAVY && rl_server_check_log(request->server, &request->err) < 0) request->refused = true;
  if (!budget->client_left && (request->refused || !rl_cached_reply_begin(request))) reply(request);
  rl_request_budget_end(budget);
}

/* Queues the stage in a pool. Returns false and refuses the request if the pool's queue is full. */
static bool run_in_pool(rl_http_request *request, rl_pool pool, void (*run)(rl_pool_task *task)) {
  request->task = (rl_pool_task){.run = run, .connection = request->connection};
  if (rl_request_pools_submit(request->server->pools, pool, &request->task)) return true;
  if (atomic_load(&request->server->stopping)) {
    refuse(request, 503, "The daemon is stopping.");
  } else {
    rl_fail(&request->err, RL_LIMIT, RL_LIMIT_BUSY, "The queue for requests of this kind is full; try again later.");
    request->refused = true;
  }
  return false;
}

/* --- the body ---------------------------------------------------------------------------------------------------------- */

static int grow_body(rl_http_request *request, size_t length, rl_error *err) {
  const rl_server *server = request->server;
  /* An upload has at most this much in memory, because each part is written as soon as it is complete. */
  size_t most = request->upload != NULL ? 2 * UPLOAD_PART_BYTES : (size_t)request->body_limit + 1;
  size_t capacity = 2 * (length + 1) < most ? 2 * (length + 1) : most;
  if (length + 1 <= request->body_capacity) return 0;
  if (!rl_connection_use_resource(server->connections, request->tracked_connection, RL_RESOURCE_BODY_BYTES, (int64_t)capacity,
                                  rl_monotonic_ns()))
    return rl_fail(err, RL_LIMIT, RL_LIMIT_BUSY,
                   "Request bodies in progress use all memory that the daemon allows for bodies; try again later.");
  char *grown = realloc(request->body, capacity);
  if (grown == NULL) return rl_fail(err, RL_ERRNO, 0, "out of memory for a body");
  request->body = grown;
  request->body_capacity = capacity;
  return 0;
}

/* Returns false if there is no place for the upload. */
static bool use_upload_place(rl_http_request *request) {
  return rl_connection_use_resource(request->server->connections, request->tracked_connection, RL_RESOURCE_UPLOADS, 1,
                                    rl_monotonic_ns());
}

/* A complete part of an upload is progress of the client, which must send each part within request_timeout_s. */
static void record_upload_progress(rl_http_request *request) {
  const rl_server *server = request->server;
  const int64_t now_ns = rl_monotonic_ns();
  rl_connection_set_deadline(server->connections, request->tracked_connection,
                             now_ns + server->config->request_timeout_s * INT64_C(1000000000));
  (void)rl_connection_use_resource(server->connections, request->tracked_connection, RL_RESOURCE_BODY_BYTES,
                                   (int64_t)request->body_capacity, now_ns);
  (void)use_upload_place(request);
}

/* Releases what an upload uses that has failed; the rest of its body is discarded. */
static void end_failed_upload(rl_http_request *request) {
  const rl_server *server = request->server;
  rl_upload_end(request->upload);
  free(request->body);
  request->upload = NULL;
  request->body = NULL;
  request->body_length = request->body_capacity = 0;
  (void)rl_connection_use_resource(server->connections, request->tracked_connection, RL_RESOURCE_UPLOADS, 0, 0);
  (void)rl_connection_use_resource(server->connections, request->tracked_connection, RL_RESOURCE_BODY_BYTES, 0, 0);
}

/* Appends the received part of an upload to its file. */
static void run_upload_write(rl_pool_task *task) {
  rl_http_request *request = request_of_task(task);
  request->refused = rl_upload_write(request->upload, request->body, request->body_length, &request->err) < 0;
  request->body_length = 0;
  if (request->refused) end_failed_upload(request);
  else record_upload_progress(request);
}

static void write_upload_part(rl_http_request *request) {
  if (!use_upload_place(request)) {
    fail_too_many_uploads(&request->err);
    request->refused = true;
    return;
  }
  rl_connection_begin_work(request->server->connections, request->tracked_connection);
  if (!run_in_pool(request, RL_POOL_UPLOAD, run_upload_write)) record_upload_progress(request); /* waits for the client again */
}

void rl_dispatch_append_body(rl_http_request *request, const char *data, size_t size) {
  size_t length = request->body_length + size;
  if (!request->refused && length > (size_t)request->body_limit) refuse_too_large(request);
  if (!request->refused && grow_body(request, length, &request->err) < 0) request->refused = true;
  if (request->refused) return;
  memcpy(request->body + request->body_length, data, size);
  request->body_length = length;
  request->body[length] = '\0';
  if (request->upload != NULL && length >= UPLOAD_PART_BYTES) write_upload_part(request);
}

static enum MHD_Result queue_response(rl_http_request *request) {
  if (request->response == NULL) return MHD_NO;
  if (request->must_close) rl_response_add_header(request->response, "Connection", "close");
  if (request->cached_body != NULL)
    (void)rl_connection_use_resource(request->server->connections, request->tracked_connection, RL_RESOURCE_REPLIES, 1,
                                     rl_monotonic_ns());
  enum MHD_Result queued = MHD_queue_response(request->connection, (unsigned)request->status, request->response);
  rl_http_request_release_response(request);
  return queued;
}

typedef struct forwarding {
  const char *x_forwarded_for, *forwarded; /* the last header of each name, which the nearest proxy has written */
} forwarding;

static enum MHD_Result collect_forwarding_header(void *context, enum MHD_ValueKind kind, const char *name, const char *value) {
  forwarding *found = context;
  (void)kind;
  if (strcasecmp(name, "X-Forwarded-For") == 0) found->x_forwarded_for = value;
  if (strcasecmp(name, "Forwarded") == 0) found->forwarded = value;
  return MHD_YES;
}

/* Sets the deadline of the reply. Refuses the request if a proxy named the client's address and this address already has too many
 * requests in progress. */
static void start_reply_time(rl_http_request *request) {
  int64_t deadline_ns = rl_monotonic_ns() + REPLY_TIMEOUT_S * INT64_C(1000000000);
  rl_client_address address;
  forwarding found = {0};
  if (request->server->config->behind_proxy)
    MHD_get_connection_values(request->connection, MHD_HEADER_KIND, collect_forwarding_header, &found);
  bool is_named = rl_client_address_parse(found.x_forwarded_for, found.forwarded, &address);
  if (rl_connection_begin_request(request->server->connections, request->tracked_connection, is_named ? &address : NULL,
                                  deadline_ns) ||
      request->refused)
    return;
  rl_fail(&request->err, RL_LIMIT, RL_LIMIT_BUSY,
          "This client address already uses a quarter of all connections; try again later.");
  request->refused = true;
}

static enum MHD_Result begin_handler(rl_http_request *request) {
  rl_pool pool = pool_of(request);
  request->stage = RL_STAGE_HANDLER;
  request->handler_start_ns = rl_monotonic_ns();
  if (pool != RL_POOL_INLINE && rl_cached_reply_find(request)) return queue_response(request);
  if (pool != RL_POOL_INLINE && run_in_pool(request, pool, run_reply)) return MHD_YES;
  reply(request);
  return queue_response(request);
}

/* Returns true if the request was refused and its reply must be sent before the body is read. This is so in three cases: the
 * client waits for 100 Continue, the body has more than MAX_DISCARDED_BODY_BYTES, or the end of the body is not known. */
static bool must_reply_before_body(const rl_http_request *request) {
  int64_t length = 0;
  const char *text = rl_http_request_header(request, "Content-Length");
  if (!request->refused) return false;
  return request->must_close || rl_http_request_header(request, "Expect") != NULL ||
         (text != NULL && (!rl_decimal_parse(text, &length) || length > MAX_DISCARDED_BODY_BYTES));
}

static enum MHD_Result begin_body(rl_http_request *request) {
  request->stage = RL_STAGE_BODY;
  if (!must_reply_before_body(request)) return MHD_YES;
  start_reply_time(request);
  return begin_handler(request);
}

/* Returns true if the token may be checked after the body was read. The check requires a query in a pool, which suspends the
 * connection. If MHD has read the whole request and the end of file before, it closes the resumed connection without a reply (see
 * end_body). To avoid this, a body that may already be in the connection's memory is read before the check. A longer body, or one
 * of unknown length, is read after the check; so is the body of a client that waits for 100 Continue, because such a client must
 * be refused before it sends the body. */
static bool may_authorize_after_body(const rl_http_request *request) {
  const char *length = rl_http_request_header(request, "Content-Length");
  int64_t declared = 0;
  if (rl_http_request_header(request, "Expect") != NULL || rl_http_request_header(request, "Transfer-Encoding") != NULL)
    return false;
  return length == NULL || (rl_decimal_parse(length, &declared) && declared <= MAX_UNAUTHORIZED_BODY_BYTES);
}

/* Called at the end of the body. Returns to MHD before a pool suspends the connection, so that MHD 0.9.75 notices that the
 * request is complete. Otherwise MHD would read from the resumed connection, and would close it without a reply at an end of
 * file. */
static enum MHD_Result end_body(rl_http_request *request) {
  request->stage = RL_STAGE_BODY_READ;
  start_reply_time(request); /* before the token check, during which the client owes nothing */
  return pool_of(request) == RL_POOL_INLINE && !request->must_authorize ? begin_handler(request) : MHD_YES;
}

static enum MHD_Result authorize_after_body(rl_http_request *request) {
  request->must_authorize = false;
  return run_in_pool(request, RL_POOL_CONTROL, run_authorization) ? MHD_YES : begin_handler(request);
}

enum MHD_Result rl_dispatch_begin(rl_http_request *request) {
  if (!check_syntax(request) || !check_origin(request) || !find_route(request)) return begin_body(request);
  if (!request->server->token_required || request->route->is_public) authorize(request);
  else if (rl_http_request_has_known_credential(request)) check_body_headers(request);
  else if (may_authorize_after_body(request)) request->must_authorize = true, request->body_limit = MAX_UNAUTHORIZED_BODY_BYTES;
  else if (run_in_pool(request, RL_POOL_CONTROL, run_authorization)) return MHD_YES;
  return begin_body(request);
}

enum MHD_Result rl_dispatch_continue(rl_http_request *request) {
  switch (request->stage) {
    case RL_STAGE_AUTHORIZATION: return begin_body(request);
    case RL_STAGE_BODY: return end_body(request);
    case RL_STAGE_BODY_READ: return request->must_authorize ? authorize_after_body(request) : begin_handler(request);
    case RL_STAGE_HANDLER: break;
  }
  return queue_response(request);
}
