#include "api/dispatch.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "api/auth.h"
#include "api/http_syntax.h"
#include "api/origin_check.h"
#include "api/reply.h"
#include "api/routes.h"
#include "api/server_internal.h"
#include "api/static_files.h"

static void refuse(rl_call *call, int status, const char *message) {
  rl_fail(&call->err, RL_HTTP, status, "%s", message);
  call->refused = true;
}

/* Returns the numeric address at which the client reached the server, NULL when unknown. */
static const char *local_address(const rl_call *call, char *text, size_t size) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(call->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  struct sockaddr_storage address;
  socklen_t length = sizeof address;
  if (info == NULL || getsockname(info->connect_fd, (struct sockaddr *)&address, &length) < 0) return NULL;
  return getnameinfo((struct sockaddr *)&address, length, text, (socklen_t)size, NULL, 0, NI_NUMERICHOST) == 0 ? text : NULL;
}

static enum MHD_Result count_host_header(void *context, enum MHD_ValueKind kind, const char *name, const char *value) {
  (void)kind, (void)value;
  if (strcasecmp(name, "Host") == 0) ++*(int *)context;
  return MHD_YES;
}

static bool host_is_ours(const rl_call *call) {
  const rl_config *config = call->server->config;
  char local[64];
  int count = 0;
  MHD_get_connection_values(call->connection, MHD_HEADER_KIND, count_host_header, &count);
  return count == 1 && rl_host_is_ours(rl_call_header(call, "Host"), config->address, local_address(call, local, sizeof local),
                                       config->allowed_hosts);
}

static bool check_origin(rl_call *call) {
  if (!host_is_ours(call)) {
    refuse(call, 421, "The Host header must name this daemon: loopback, its address, or one of allowed_hosts.");
  } else if (!rl_origin_is_ours(rl_call_header(call, "Origin"), rl_call_header(call, "Host")) ||
             !rl_fetch_site_is_ours(rl_call_header(call, "Sec-Fetch-Site"))) {
    refuse(call, 403, "The request comes from a page of another site.");
  }
  return !call->refused;
}

static bool find_route(rl_call *call) {
  call->route = rl_route_find(call->method, call->path, &call->id, call->allow, sizeof call->allow);
  if (call->route != NULL) {
    call->allow[0] = '\0';
    return true;
  }
  if (call->allow[0] == '\0' && rl_static_file_exists(call->server, call->path))
    snprintf(call->allow, sizeof call->allow, "GET, HEAD");
  if (call->allow[0] == '\0') {
    refuse(call, 404, "No route has this path; /openapi.json lists the routes.");
    return false;
  }
  rl_route_allow_method(call->allow, sizeof call->allow, "OPTIONS");
  if (strcmp(call->method, "OPTIONS") != 0) refuse(call, 405, "The Allow header lists the methods of this path.");
  return false;
}

static const char *too_large_message(const rl_call *call) {
  return call->body_limit == 0 ? "This route takes no body." : "The body is larger than the limit (body_limit_bytes).";
}

/* Checks Content-Length and Content-Type before the body is read. */
static void check_body_headers(rl_call *call) {
  const char *length = rl_call_header(call, "Content-Length");
  int64_t declared = 0;
  call->body_limit =
      call->route->body_limit == RL_BODY_CONFIGURED ? call->server->config->body_limit_bytes : call->route->body_limit;
  if (length != NULL && (!rl_decimal_parse(length, &declared) || declared > call->body_limit))
    refuse(call, 413, too_large_message(call));
  else if (call->body_limit > 0 && !rl_media_type_is_json(rl_call_header(call, "Content-Type")))
    refuse(call, 415, "The Content-Type must be application/json.");
}

void rl_dispatch_headers(rl_call *call) {
  if (!check_origin(call) || !find_route(call)) return;
  if (rl_call_authorize(call, &call->err) < 0) call->refused = true;
  else check_body_headers(call);
}

static int grow_body(rl_call *call, size_t length, rl_error *err) {
  if (length + 1 <= call->body_capacity) return 0;
  char *grown = realloc(call->body, (length + 1) * 2);
  if (grown == NULL) return rl_fail(err, RL_SYS, 0, "out of memory for a body");
  call->body = grown;
  call->body_capacity = (length + 1) * 2;
  return 0;
}

void rl_dispatch_body(rl_call *call, const char *data, size_t size) {
  size_t length = call->body_length + size;
  if (!call->refused && length > (size_t)call->body_limit) refuse(call, 413, too_large_message(call));
  if (!call->refused && grow_body(call, length, &call->err) < 0) call->refused = true;
  if (call->refused) return;
  memcpy(call->body + call->body_length, data, size);
  call->body_length = length;
  call->body[length] = '\0';
}

static int reply_options(rl_call *call, rl_error *err) {
  struct MHD_Response *response = rl_response_empty();
  if (response != NULL) rl_response_add_header(response, "Allow", call->allow);
  return rl_reply(call, 204, response, err);
}

/* Refuses a request with query parameters if its route defines none. */
static int check_no_query(rl_call *call, rl_error *err) {
  char unused = 0;
  if (call->route->query != NULL || call->route->ignores_query) return 0;
  return rl_call_parse_query(call, &unused, 0, err);
}

static int run_handler(rl_call *call, rl_error *err) {
  if (call->refused) return -1; /* err, which is call->err, has the reason already */
  if (call->route == NULL) return reply_options(call, err);
  if (check_no_query(call, err) < 0) return -1;
  return call->route->handle(call, err);
}

enum MHD_Result rl_dispatch_end(rl_call *call) {
  rl_error err = {0};
  if (run_handler(call, &call->err) < 0 && (call->replied || rl_reply_problem(call, &err) < 0)) return MHD_NO;
  return MHD_YES;
}
