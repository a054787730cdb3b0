/* Runs libmicrohttpd (MHD): listening, TLS, limits, and the callbacks of a connection and of a request. */
#include "api/server.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/dispatch.h"
#include "api/event_streams.h"
#include "api/http_statistics.h"
#include "api/http_syntax.h"
#include "api/request_pools.h"
#include "api/routes.h"
#include "api/server_internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "suite/suite_runner.h"

enum {
  CLIENT_THREADS = 4,
  MAX_PROBE_CONNECTIONS = 4,          /* open connections of rl_server_connect_probe */
  CONNECTION_MEMORY_BYTES = 32 << 10, /* memory that MHD reserves for a connection: the headers of the request and the reply */
  UNREAD_INPUT_CHECK_MS = 10,         /* interval between checks of abandoned connections whose input MHD has not read */
  CLOSE_WAIT_MS = 700,                /* how long a closing server waits for replies in progress */
  SEND_BUFFER_BYTES = 128 << 10, /* send buffer of a socket; Linux would otherwise enlarge it to megabytes for each slow client */
  MAX_OTHER_DESCRIPTORS = 256,   /* descriptors that are not connections: files, databases, pipes */
  MAX_QUERY_PARAMETERS = 64,     /* MHD closes the connection without a reply if parameters exceed CONNECTION_MEMORY_BYTES */
  MAX_PEM_BYTES = 1 << 20,
  BODY_CACHE_BYTES = 68 << 20,
  REQUEST_BODIES_BYTES = 64 << 20, /* memory of all request bodies in progress, but at least MIN_LARGEST_BODIES of the largest */
  MIN_LARGEST_BODIES = 4,
  MAX_UPLOADS = 8,          /* uploads of more than one part at the same time */
  REPLY_PATIENCE_S = 1,     /* time for a client to read a reply that keeps memory from others */
  UPLOAD_PATIENCE_S = 5,    /* an upload without a part for so long ends if another needs its place */
  SNAPSHOT_PATIENCE_S = 10, /* time for a client to read a streamed reply that keeps the write-ahead log from being reset */
  LARGE_LOG_BYTES = 256 << 20,
  RESETS_BEFORE_WARNING = 3
};
static const int64_t second_ns = 1000000000;

/* The watcher thread releases abandoned connections. Once per second it shuts down late connections, calls rl_event_streams_tick,
 * limits the write-ahead log, and returns free memory to the kernel. */
typedef struct watcher_thread {
  pthread_t thread;
  bool started;
  bool log_reset_failed;      /* the last attempt to reset a large write-ahead log failed, and not because it was in use */
  int resets_held_by_program; /* number of attempts that another program prevented since the log was reset */
  int64_t program_held_ns;    /* time of the last of these attempts; 0: none */
  int stop_fd;                /* an eventfd; a write ends the thread */
} watcher_thread;

typedef struct server_with_watcher {
  rl_server server;
  watcher_thread watcher;
} server_with_watcher;

static void connection_changed(void *context, struct MHD_Connection *connection, void **tracked_connection,
                               enum MHD_ConnectionNotificationCode change) {
  rl_server *server = context;
  if (change == MHD_CONNECTION_NOTIFY_CLOSED) {
    rl_connection_remove(server->connections, *tracked_connection);
    return;
  }
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  int64_t deadline_ns = rl_monotonic_ns() + server->config->request_timeout_s * second_ns;
  *tracked_connection = rl_connection_add(server->connections, info->connect_fd, deadline_ns);
}

/* truncate_query returns the address of this variable for a request with too many parameters. The address is the request's state
 * until begin_request replaces it. */
static char too_many_parameters;

/* MHD calls this function before it parses the query, so that the function can truncate the query in MHD's buffer. Returns the
 * initial state of the request, which MHD passes to serve. */
static void *truncate_query(void *context, const char *uri, struct MHD_Connection *connection) {
  (void)context, (void)connection;
  return uri != NULL && rl_query_truncate((char *)uri, MAX_QUERY_PARAMETERS) ? &too_many_parameters : NULL;
}

static rl_http_request *begin_request(rl_server *server, struct MHD_Connection *connection, rl_connection *tracked_connection,
                                      const char *method, const char *path) {
  rl_http_request *request = calloc(1, sizeof *request);
  if (request == NULL) return NULL;
  request->server = server;
  request->connection = connection;
  request->tracked_connection = tracked_connection;
  request->socket = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
  request->start_ns = rl_monotonic_ns();
  snprintf(request->method, sizeof request->method, "%s", method);
  snprintf(request->path, sizeof request->path, "%s", path);
  rl_http_statistics_begin(server->statistics);
  return request;
}

/* Returns whether the connection is suspended because a pool works on the request. MHD must then keep the received data. */
static bool is_suspended(const rl_http_request *request) {
  return MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_SUSPENDED)->suspended == MHD_YES;
}

static enum MHD_Result continue_request(rl_http_request *request, const char *data, size_t *size) {
  if (*size == 0) return rl_dispatch_continue(request);
  if (is_suspended(request)) return MHD_YES;
  rl_dispatch_append_body(request, data, *size);
  *size = 0;
  return MHD_YES;
}

static rl_connection *tracked_connection_of(struct MHD_Connection *connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* MHD calls this function first with the headers, when *state has the value that truncate_query returned; then with each part
 * of the body; then without data. MHD also calls the function without data each time the connection is resumed. */
static enum MHD_Result serve(void *context, struct MHD_Connection *connection, const char *path, const char *method,
                             const char *version, const char *data, size_t *size, void **state) {
  rl_server *server = context;
  rl_connection *tracked_connection = tracked_connection_of(connection);
  enum MHD_Result result = MHD_NO;
  (void)version;
  rl_connection_begin_service(server->connections, tracked_connection, rl_monotonic_ns());
  if (*state != NULL && *state != &too_many_parameters) {
    result = continue_request(*state, data, size);
  } else {
    bool query_was_cut = *state != NULL;
    rl_http_request *request = *state = begin_request(server, connection, tracked_connection, method, path);
    if (request != NULL) request->too_many_parameters = query_was_cut;
    if (request != NULL) result = rl_dispatch_begin(request);
  }
  rl_connection_end_service(server->connections, tracked_connection);
  return result;
}

static void end_request(void *context, struct MHD_Connection *connection, void **state, enum MHD_RequestTerminationCode code) {
  rl_server *server = context;
  rl_http_request *request = *state;
  (void)connection, (void)code;
  if (request == NULL || *state == &too_many_parameters) return;
  int64_t now_ns = rl_monotonic_ns();
  int route = request->route != NULL ? (int)(request->route - rl_routes) : -1;
  rl_http_statistics_end(server->statistics, route, request->status, now_ns - request->start_ns);
  rl_connection_end_request(server->connections, request->tracked_connection,
                            now_ns + server->config->request_timeout_s * second_ns);
  rl_http_request_free(request);
  *state = NULL;
}

/* Decodes percent-encoding. Leaves text with %00 unchanged, because a decoded NUL would end the C string. */
static size_t unescape(void *context, struct MHD_Connection *connection, char *text) {
  (void)context, (void)connection;
  return strstr(text, "%00") != NULL ? strlen(text) : MHD_http_unescape(text);
}

static void http_log(void *context, const char *format, va_list args) {
  char line[512];
  (void)context;
  vsnprintf(line, sizeof line, format, args);
  rl_log(RL_LOG_DEBUG, "http: %s", line);
}

static void release_abandoned(rl_server *server, bool *again) {
  if (rl_connections_release_abandoned(server->connections, again)) rl_event_streams_end_abandoned(server->event_streams);
}

/* Resets the write-ahead log if it is large. Returns an rl_reset_result, RL_RESET_DONE if the log is not large, or -1 after
 * another failure, such as a full disk, after which ending readers would be in vain. */
static int reset_large_log(watcher_thread *watcher, rl_store *store, int64_t *log_bytes) {
  int64_t database_bytes;
  rl_error err;
  int rc = rl_store_file_sizes(store, &database_bytes, log_bytes, &err);
  if (rc == 0) rc = *log_bytes > LARGE_LOG_BYTES ? rl_store_reset_log(store, &err) : RL_RESET_DONE;
  if (rc < 0 && !watcher->log_reset_failed) rl_log(RL_LOG_WARNING, "can't reset the write-ahead log: %s", err.message);
  watcher->log_reset_failed = rc < 0;
  return rc;
}

/* Records whether another program prevented the reset of the log. Logs this once until the log is reset; not at the first
 * attempts, because a query of the daemon may have ended during the attempt. */
static void record_reset(watcher_thread *watcher, int result, int64_t log_bytes, int64_t now_ns) {
  if (result == RL_RESET_DONE) watcher->resets_held_by_program = 0;
  if (result != RL_RESET_HELD_BY_PROGRAM) return;
  watcher->program_held_ns = now_ns;
  if (++watcher->resets_held_by_program == RESETS_BEFORE_WARNING)
    rl_log(RL_LOG_WARNING, "can't reset the write-ahead log, %lld bytes: another program reads or locks the database",
           (long long)log_bytes);
}

/* While queries of the daemon keep a large log from being reset, ends the streamed replies that began longest ago, whose clients
 * read slowly, and lets no further long reads begin. Does neither if another program prevented a reset within the last
 * SNAPSHOT_PATIENCE_S, because that would be in vain. */
static void limit_log(server_with_watcher *watched_server, int64_t now_ns) {
  rl_server *server = &watched_server->server;
  watcher_thread *watcher = &watched_server->watcher;
  int64_t log_bytes, ended = 0;
  if (atomic_load(&server->stopping)) return; /* the last connection that closes the database resets the log */
  const int result = reset_large_log(watcher, server->store, &log_bytes);
  record_reset(watcher, result, log_bytes, now_ns);
  const bool must_limit =
      result == RL_RESET_HELD_BY_QUERY && now_ns - watcher->program_held_ns >= SNAPSHOT_PATIENCE_S * second_ns;
  while (must_limit && rl_connections_shut_down_stalled(server->connections, RL_RESOURCE_SNAPSHOTS, now_ns)) ended++;
  atomic_store(&server->log_is_large, must_limit);
  if (ended > 0)
    rl_log(RL_LOG_WARNING, "ended %lld replies that kept the write-ahead log, %lld bytes, from being reset", (long long)ended,
           (long long)log_bytes);
}

int rl_server_check_log(const rl_server *server, rl_error *err) {
  if (!atomic_load(&server->log_is_large)) return 0;
  return rl_fail(err, RL_LIMIT, RL_LIMIT_BUSY,
                 "The database's write-ahead log is too large because long requests in progress still read it; try again later.");
}

static void *run_watcher(void *context) {
  server_with_watcher *watched_server = context;
  rl_server *server = &watched_server->server;
  struct pollfd events[] = {{.fd = watched_server->watcher.stop_fd, .events = POLLIN},
                            {.fd = rl_connections_abandoned_descriptor(server->connections), .events = POLLIN}};
  int64_t next_tick_ns = rl_monotonic_ns() + second_ns;
  bool again = false;
  while (events[0].revents == 0) {
    int64_t left_ms = (next_tick_ns - rl_monotonic_ns()) / 1000000;
    poll(events, 2, again && left_ms > UNREAD_INPUT_CHECK_MS ? UNREAD_INPUT_CHECK_MS : (int)(left_ms > 0 ? left_ms : 0));
    release_abandoned(server, &again);
    int64_t now_ns = rl_monotonic_ns();
    if (now_ns < next_tick_ns) continue;
    next_tick_ns = now_ns + second_ns;
    rl_connections_shut_down_late(server->connections, now_ns);
    rl_event_streams_tick(server->event_streams, now_ns);
    limit_log(watched_server, now_ns);
    rl_body_cache_trim_heap(server->body_cache);
  }
  return NULL;
}

static int start_watcher(server_with_watcher *watched_server, rl_error *err) {
  watcher_thread *watcher = &watched_server->watcher;
  watcher->stop_fd = eventfd(0, EFD_CLOEXEC);
  if (watcher->stop_fd < 0) return rl_fail_errno(err, "the HTTP server's watcher thread can't be started");
  int rc = pthread_create(&watcher->thread, NULL, run_watcher, watched_server);
  watcher->started = rc == 0;
  if (watcher->started) return 0;
  close(watcher->stop_fd);
  return rl_fail(err, RL_ERRNO, rc, "the HTTP server's watcher thread can't be started: %s", strerror(rc));
}

static void stop_watcher(watcher_thread *watcher) {
  if (!watcher->started) return;
  eventfd_write(watcher->stop_fd, 1);
  pthread_join(watcher->thread, NULL);
  close(watcher->stop_fd);
}

/* Sets token_required. Fails if the address is not loopback, and either there is no token, or neither TLS nor behind_proxy is
 * set. */
static int check_address_protection(rl_server *server, rl_error *err) {
  const rl_config *config = server->config;
  int64_t tokens = 0;
  server->token_required = !rl_config_is_loopback(config) || config->require_token || config->behind_proxy;
  if (rl_config_is_loopback(config)) return 0;
  if (config->tls_certificate[0] == '\0' && !config->behind_proxy)
    return rl_fail(
        err, RL_INPUT, 0,
        "address %s is not a loopback address: set tls_certificate and tls_key, or behind_proxy = true if a proxy does TLS",
        config->address);
  if (rl_store_count_tokens(server->store, &tokens, err) < 0) return rl_wrap(err, "counting tokens");
  if (tokens == 0)
    return rl_fail(err, RL_INPUT, 0,
                   "address %s is not a loopback address and there is no token: make one with `rooflinectl token`",
                   config->address);
  return 0;
}

static int read_pem(const char *path, char **text, rl_error *err) {
  RL_CLEANUP(rl_close_descriptor) int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return rl_fail_errno(err, "%s can't be opened", path);
  RL_CLEANUP(rl_free_text) char *buffer = malloc(MAX_PEM_BYTES);
  if (buffer == NULL) return rl_fail(err, RL_ERRNO, 0, "out of memory for %s", path);
  size_t used = 0;
  for (ssize_t got; (got = read(file, buffer + used, MAX_PEM_BYTES - 1 - used)) != 0; used += (size_t)got)
    if (got < 0) return rl_fail_errno(err, "%s can't be read", path);
  buffer[used] = '\0';
  *text = rl_take_ownership(&buffer);
  return 0;
}

static int bind_and_listen(int descriptor, const struct addrinfo *address) {
  if (descriptor < 0) return -1;
  if (setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) < 0) return -1;
  if (setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &(int){SEND_BUFFER_BYTES}, sizeof(int)) < 0) return -1;
  if (bind(descriptor, address->ai_addr, address->ai_addrlen) < 0) return -1;
  return listen(descriptor, SOMAXCONN);
}

static int read_port(int descriptor, int *port) {
  struct sockaddr_storage address;
  socklen_t length = sizeof address;
  char service[16];
  if (getsockname(descriptor, (struct sockaddr *)&address, &length) < 0) return -1;
  getnameinfo((struct sockaddr *)&address, length, NULL, 0, service, sizeof service, NI_NUMERICSERV);
  *port = atoi(service);
  return 0;
}

static int open_listener(const rl_config *config, int *listen_fd, int *port, rl_error *err) {
  struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
  struct addrinfo *found = NULL;
  char service[16];
  snprintf(service, sizeof service, "%lld", (long long)config->port);
  int rc = getaddrinfo(config->address, service, &hints, &found);
  if (rc != 0) return rl_fail(err, RL_INPUT, 0, "address %s: %s", config->address, gai_strerror(rc));
  RL_CLEANUP(rl_close_descriptor)
  int descriptor = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, found->ai_protocol);
  bool failed = bind_and_listen(descriptor, found) < 0 || read_port(descriptor, port) < 0;
  freeaddrinfo(found);
  if (failed) return rl_fail_errno(err, "can't listen on %s port %s (--port chooses another)", config->address, service);
  *listen_fd = descriptor;
  descriptor = -1;
  return 0;
}

/* Raises the soft limit of open files, usually 1024, so that it allows this many connections. */
static int raise_descriptor_limit(int64_t connections, rl_error *err) {
  struct rlimit limit;
  rlim_t needed = (rlim_t)connections + MAX_OTHER_DESCRIPTORS;
  if (getrlimit(RLIMIT_NOFILE, &limit) < 0) return rl_fail_errno(err, "the limit of open files can't be read");
  if (limit.rlim_cur >= needed) return 0;
  if (limit.rlim_max < needed)
    return rl_fail(err, RL_INPUT, 0,
                   "connection_limit %lld needs %llu open files and the limit is %llu: lower connection_limit or raise the limit",
                   (long long)connections, (unsigned long long)needed, (unsigned long long)limit.rlim_max);
  limit.rlim_cur = needed;
  return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? rl_fail_errno(err, "the limit of open files can't be raised") : 0;
}

/* Refuses connections when the server stops. MHD_quiesce_daemon would also refuse connections, but has a race in MHD 0.9.75:
 * MHD_quiesce_daemon and an MHD thread both remove the listening socket from the epoll set, and the second removal aborts the
 * process. */
static enum MHD_Result accepts_connection(void *context, const struct sockaddr *address, socklen_t length) {
  const rl_server *server = context;
  (void)address, (void)length;
  return atomic_load(&server->stopping) ? MHD_NO : MHD_YES;
}

static struct MHD_Daemon *start_mhd(rl_server *server, unsigned flags, unsigned connections,
                                    const struct MHD_OptionItem *more_options) {
  flags |= MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC | MHD_USE_ERROR_LOG;
  return MHD_start_daemon(flags, 0, accepts_connection, server, serve, server, MHD_OPTION_EXTERNAL_LOGGER, http_log, NULL,
                          MHD_OPTION_CONNECTION_LIMIT, connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                          (size_t)CONNECTION_MEMORY_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
                          (unsigned)server->config->request_timeout_s, MHD_OPTION_URI_LOG_CALLBACK, truncate_query, NULL,
                          MHD_OPTION_NOTIFY_COMPLETED, end_request, server, MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL,
                          MHD_OPTION_ARRAY, more_options, MHD_OPTION_END);
}

/* Returns how many connections one address may have, so that one client can't occupy all connections; 0: any number. Behind a
 * proxy and on loopback there is no limit, because all clients have the same address. */
static unsigned max_connections_per_address(const rl_config *config) {
  if (rl_config_is_loopback(config) || config->behind_proxy) return 0;
  return (unsigned)rl_connections_max_per_address(config->connection_limit);
}

static int start_client_http(rl_server *server, rl_error *err) {
  const rl_config *config = server->config;
  bool tls = config->tls_certificate[0] != '\0';
  if (tls && read_pem(config->tls_certificate, &server->certificate, err) < 0) return -1;
  if (tls && read_pem(config->tls_key, &server->key, err) < 0) return -1;
  /* MHD divides the connection limit between its threads. */
  unsigned threads = config->connection_limit < CLIENT_THREADS ? (unsigned)config->connection_limit : CLIENT_THREADS;
  server->client_thread_count = (int)threads;
  const struct MHD_OptionItem options[] = {
      {MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)connection_changed, server},
      {MHD_OPTION_LISTEN_SOCKET, server->listen_fd, NULL},
      {MHD_OPTION_THREAD_POOL_SIZE, threads > 1 ? threads : 0, NULL},
      {MHD_OPTION_PER_IP_CONNECTION_LIMIT, max_connections_per_address(config), NULL},
      {tls ? MHD_OPTION_HTTPS_MEM_CERT : MHD_OPTION_END, 0, server->certificate},
      {MHD_OPTION_HTTPS_MEM_KEY, 0, server->key},
      {MHD_OPTION_END, 0, NULL},
  };
  server->client_http = start_mhd(server, tls ? MHD_USE_TLS : 0, (unsigned)config->connection_limit, options);
  server->listen_fd = -1; /* MHD closes it, even if MHD_start_daemon fails */
  if (server->client_http != NULL) return 0;
  return rl_fail(err, RL_ERRNO, 0, "the HTTP server can't be started%s",
                 tls ? ": are tls_certificate and tls_key a pair of PEM files?" : "");
}

/* Starts a second MHD daemon for health checks. It has the same handlers but no listening socket, so that clients can't use up
 * its connections. */
static int start_probe_http(rl_server *server, rl_error *err) {
  static const struct MHD_OptionItem no_options[] = {{MHD_OPTION_END, 0, NULL}};
  server->probe_http = start_mhd(server, MHD_USE_NO_LISTEN_SOCKET, MAX_PROBE_CONNECTIONS, no_options);
  return server->probe_http != NULL ? 0 : rl_fail(err, RL_ERRNO, 0, "the HTTP server can't be started");
}

int rl_server_connect_probe(rl_server *server, rl_error *err) {
  const struct sockaddr_un unnamed = {.sun_family = AF_UNIX};
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets) < 0)
    return rl_fail_errno(err, "can't make a connection for a probe");
  if (MHD_add_connection(server->probe_http, sockets[0], (const struct sockaddr *)&unnamed, sizeof unnamed) == MHD_YES)
    return sockets[1];
  close(sockets[1]); /* MHD has closed sockets[0] */
  return rl_fail(err, RL_ERRNO, 0, "the HTTP server accepts no connection for a probe");
}

int rl_server_check_liveness(rl_server *server, int64_t limit_ns, rl_error *err) {
  int threads = server->client_thread_count;
  if (rl_connections_count_busy_since(server->connections, rl_monotonic_ns() - limit_ns) < threads)
    return rl_request_pools_check_liveness(server->pools, limit_ns + server->config->request_deadline_s * second_ns, err);
  return rl_fail(err, RL_HTTP, 0, "each of the %d threads that serve clients has been busy with one request for %.1f s", threads,
                 (double)limit_ns / (double)second_ns);
}

/* Limits what all requests in progress use together. */
static void limit_resources(const rl_server *server) {
  int64_t largest_bodies = MIN_LARGEST_BODIES * server->config->body_limit_bytes;
  rl_connections_limit_resource(server->connections, RL_RESOURCE_BODY_BYTES,
                                largest_bodies > REQUEST_BODIES_BYTES ? largest_bodies : REQUEST_BODIES_BYTES, 0);
  rl_connections_limit_resource(server->connections, RL_RESOURCE_UPLOADS, MAX_UPLOADS, UPLOAD_PATIENCE_S * second_ns);
  rl_connections_limit_resource(server->connections, RL_RESOURCE_REPLIES, INT64_MAX, REPLY_PATIENCE_S * second_ns);
  rl_connections_limit_resource(server->connections, RL_RESOURCE_SNAPSHOTS, INT64_MAX, SNAPSHOT_PATIENCE_S * second_ns);
}

static int allocate_members(rl_server *server, rl_error *err) {
  server->pools = rl_request_pools_start(err);
  if (server->pools == NULL) return -1;
  server->connections = rl_connections_new(server->config->connection_limit, err);
  if (server->connections == NULL) return -1;
  limit_resources(server);
  server->body_cache = rl_body_cache_new(BODY_CACHE_BYTES);
  server->event_streams = rl_event_streams_new(server, server->config->connection_limit / 2);
  server->statistics = rl_http_statistics_new();
  server->login_sessions = rl_login_sessions_new();
  if (server->body_cache != NULL && server->event_streams != NULL && server->statistics != NULL && server->login_sessions != NULL)
    return 0;
  return rl_fail(err, RL_ERRNO, 0, "out of memory for the HTTP server");
}

int rl_server_open(const rl_config *config, const rl_server_parts *parts, rl_server **server, int *port, rl_error *err) {
  server_with_watcher *watched_server = calloc(1, sizeof *watched_server);
  if (watched_server == NULL) return rl_fail(err, RL_ERRNO, 0, "out of memory for the HTTP server");
  RL_CLEANUP(rl_server_cleanup) rl_server *opened = &watched_server->server;
  int port_in_use = 0;
  *opened = (rl_server){.config = config,
                        .store = parts->store,
                        .queue = parts->queue,
                        .uploads = parts->uploads,
                        .supervisor = parts->supervisor,
                        .suites = parts->suites,
                        .suite_runner = parts->suite_runner,
                        .listen_fd = -1};
  opened->web_folder_fd = open(config->web, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
  if (allocate_members(opened, err) < 0 || check_address_protection(opened, err) < 0) return -1;
  if (raise_descriptor_limit(config->connection_limit, err) < 0) return -1;
  if (open_listener(config, &opened->listen_fd, &port_in_use, err) < 0) return -1;
  if (start_client_http(opened, err) < 0 || start_probe_http(opened, err) < 0 || start_watcher(watched_server, err) < 0)
    return -1;
  rl_queue_set_listener(opened->queue, rl_event_streams_notify, opened->event_streams);
  rl_suite_runner_set_listener(opened->suite_runner, rl_event_streams_notify_suite_run, opened->event_streams);
  *port = port_in_use;
  *server = rl_take_ownership(&opened);
  return 0;
}

static void wait_for_replies(const rl_server *server) {
  int64_t deadline_ns = rl_monotonic_ns() + CLOSE_WAIT_MS * INT64_C(1000000);
  while (rl_http_statistics_active_requests(server->statistics) > 0 && rl_monotonic_ns() < deadline_ns) usleep(5000);
}

void rl_server_close(rl_server *server) {
  if (server == NULL) return;
  server_with_watcher *watched_server = (server_with_watcher *)server;
  atomic_store(&server->stopping, true);
  if (server->client_http != NULL) {
    rl_event_streams_stop(server->event_streams);
    wait_for_replies(server);
    rl_queue_set_listener(server->queue, NULL, NULL);
    rl_suite_runner_set_listener(server->suite_runner, NULL, NULL);
  }
  stop_watcher(&watched_server->watcher);
  atomic_store(&server->interrupt_queries, true);
  if (server->pools != NULL)
    rl_request_pools_stop(server->pools); /* resumes all suspended connections, as MHD_stop_daemon requires */
  if (server->client_http != NULL) MHD_stop_daemon(server->client_http);
  if (server->probe_http != NULL) MHD_stop_daemon(server->probe_http);
  if (server->listen_fd >= 0) close(server->listen_fd);
  if (server->web_folder_fd >= 0) close(server->web_folder_fd);
  rl_login_sessions_free(server->login_sessions);
  rl_http_statistics_free(server->statistics);
  rl_event_streams_free(server->event_streams);
  rl_body_cache_free(server->body_cache);
  rl_connections_free(server->connections);
  rl_request_pools_free(server->pools);
  free(server->certificate);
  free(server->key);
  free(watched_server);
}
