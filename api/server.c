/* libmicrohttpd below the route table: listening, TLS, limits, and the callbacks of a connection and of a request. */
#include "api/server.h"

#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "api/dispatch.h"
#include "api/event_streams.h"
#include "api/http_statistics.h"
#include "api/http_syntax.h"
#include "api/routes.h"
#include "api/server_internal.h"
#include "base/clock.h"
#include "base/log.h"

enum {
  CLIENT_THREADS = 4,
  MAX_PROBES = 4,                     /* open connections of rl_server_probe */
  MIN_ADDRESSES = 4,                  /* no address of a client gets more than 1 / MIN_ADDRESSES of the connections */
  CONNECTION_MEMORY_BYTES = 32 << 10, /* for the headers of the request and of the reply */
  MAX_DROPPED_BODY_BYTES = 64 << 20,  /* a refused body up to this size is read, so that the client then reads the reply */
  REPLY_TIMEOUT_S = 120,              /* for a client to read a reply; event streams have none */
  CLOSE_WAIT_MS = 700,                /* for replies in progress when the server closes */
  SEND_BUFFER_BYTES = 128 << 10,      /* of a socket; Linux would grow it to megabytes for each slow reader */
  OTHER_DESCRIPTORS = 256,            /* files, databases and pipes, besides connections */
  MAX_PEM_BYTES = 1 << 20
};
static const int64_t second_ns = 1000000000;

/* Shuts late connections and sends keep-alives once a second. */
typedef struct ticker_thread {
  pthread_t thread;
  bool started, stopping;
  pthread_mutex_t lock;
  pthread_cond_t stop;
} ticker_thread;

typedef struct server_with_ticker {
  rl_server server;
  ticker_thread ticker;
} server_with_ticker;

static void connection_changed(void *context, struct MHD_Connection *connection, void **record,
                               enum MHD_ConnectionNotificationCode change) {
  rl_server *server = context;
  if (change == MHD_CONNECTION_NOTIFY_CLOSED) {
    rl_connection_remove(server->connections, *record);
    return;
  }
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  int64_t deadline_ns = rl_monotonic_ns() + server->config->request_timeout_s * second_ns;
  *record = rl_connection_add(server->connections, info->connect_fd, deadline_ns);
}

static rl_call *begin_call(rl_server *server, struct MHD_Connection *connection, rl_connection *record, const char *method,
                           const char *path) {
  rl_call *call = calloc(1, sizeof *call);
  if (call == NULL) return NULL;
  call->server = server;
  call->connection = connection;
  call->connection_record = record;
  call->start_ns = rl_monotonic_ns();
  snprintf(call->method, sizeof call->method, "%s", method);
  snprintf(call->path, sizeof call->path, "%s", path);
  rl_http_statistics_begin(server->statistics);
  rl_dispatch_headers(call);
  return call;
}

/* Returns true when a refusal must be sent before the body arrives: the client waits for 100 Continue, or would send too much. */
static bool must_reply_before_body(const rl_call *call) {
  int64_t length = 0;
  const char *text = rl_call_header(call, "Content-Length");
  if (!call->refused) return false;
  return rl_call_header(call, "Expect") != NULL ||
         (text != NULL && (!rl_decimal_parse(text, &length) || length > MAX_DROPPED_BODY_BYTES));
}

static enum MHD_Result continue_call(rl_call *call, const char *data, size_t *size) {
  if (*size > 0) {
    rl_dispatch_body(call, data, *size);
    *size = 0;
    return MHD_YES;
  }
  rl_connection_set_deadline(call->server->connections, call->connection_record, rl_monotonic_ns() + REPLY_TIMEOUT_S * second_ns);
  return rl_dispatch_end(call);
}

static rl_connection *record_of(struct MHD_Connection *connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* MHD calls it with the headers (*state NULL), then with each part of the body, then without data. */
static enum MHD_Result serve(void *context, struct MHD_Connection *connection, const char *path, const char *method,
                             const char *version, const char *data, size_t *size, void **state) {
  rl_server *server = context;
  rl_connection *record = record_of(connection);
  enum MHD_Result result = MHD_NO;
  (void)version;
  rl_connection_enter(server->connections, record, rl_monotonic_ns());
  if (*state != NULL) {
    result = continue_call(*state, data, size);
  } else {
    rl_call *call = *state = begin_call(server, connection, record, method, path);
    if (call != NULL) result = must_reply_before_body(call) ? rl_dispatch_end(call) : MHD_YES;
  }
  rl_connection_leave(server->connections, record);
  return result;
}

static void end_call(void *context, struct MHD_Connection *connection, void **state, enum MHD_RequestTerminationCode code) {
  rl_server *server = context;
  rl_call *call = *state;
  (void)connection, (void)code;
  if (call == NULL) return;
  int64_t now_ns = rl_monotonic_ns();
  int route = call->route != NULL ? (int)(call->route - rl_routes) : -1;
  rl_http_statistics_end(server->statistics, route, call->status, now_ns - call->start_ns);
  rl_connection_set_deadline(server->connections, call->connection_record,
                             now_ns + server->config->request_timeout_s * second_ns);
  rl_call_free(call);
  *state = NULL;
}

/* Decodes percent-encoding, except in text with %00: a decoded NUL would end a C string early. */
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

static void *run_ticker(void *context) {
  server_with_ticker *with = context;
  ticker_thread *ticker = &with->ticker;
  pthread_mutex_lock(&ticker->lock);
  while (!ticker->stopping) {
    struct timespec wake;
    clock_gettime(CLOCK_MONOTONIC, &wake);
    wake.tv_sec++;
    pthread_cond_timedwait(&ticker->stop, &ticker->lock, &wake);
    rl_connections_shut_late(with->server.connections, rl_monotonic_ns());
    rl_event_streams_tick(with->server.event_streams, rl_monotonic_ns());
  }
  pthread_mutex_unlock(&ticker->lock);
  return NULL;
}

static int start_ticker(server_with_ticker *with, rl_error *err) {
  ticker_thread *ticker = &with->ticker;
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_mutex_init(&ticker->lock, NULL);
  pthread_cond_init(&ticker->stop, &monotonic);
  pthread_condattr_destroy(&monotonic);
  int rc = pthread_create(&ticker->thread, NULL, run_ticker, with);
  if (rc != 0) return rl_fail(err, RL_SYS, rc, "the HTTP server's ticker thread can't be started: %s", strerror(rc));
  ticker->started = true;
  return 0;
}

static void stop_ticker(ticker_thread *ticker) {
  if (!ticker->started) return;
  pthread_mutex_lock(&ticker->lock);
  ticker->stopping = true;
  pthread_cond_signal(&ticker->stop);
  pthread_mutex_unlock(&ticker->lock);
  pthread_join(ticker->thread, NULL);
  pthread_cond_destroy(&ticker->stop);
  pthread_mutex_destroy(&ticker->lock);
}

/* Sets token_required. -1 for an address beyond loopback without a token, or without TLS or a proxy that provides it. */
static int check_exposure(rl_server *server, rl_error *err) {
  const rl_config *config = server->config;
  int64_t tokens = 0;
  server->token_required = !rl_config_loopback(config) || config->require_token || config->behind_proxy;
  if (rl_config_loopback(config)) return 0;
  if (config->tls_certificate[0] == '\0' && !config->behind_proxy)
    return rl_fail(err, RL_INPUT, 0,
                   "address %s is beyond loopback: set tls_certificate and tls_key, or behind_proxy = true when a proxy does TLS",
                   config->address);
  if (rl_store_token_count(server->store, &tokens, err) < 0) return rl_wrap(err, "counting tokens");
  if (tokens == 0)
    return rl_fail(err, RL_INPUT, 0, "address %s is beyond loopback and there is no token: make one with `rooflinectl token`",
                   config->address);
  return 0;
}

static int read_pem(const char *path, char **text, rl_error *err) {
  rl_auto(rl_close_descriptor) int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return rl_fail_errno(err, "%s can't be opened", path);
  rl_auto(rl_free_text) char *buffer = malloc(MAX_PEM_BYTES);
  if (buffer == NULL) return rl_fail(err, RL_SYS, 0, "out of memory for %s", path);
  size_t used = 0;
  for (ssize_t got; (got = read(file, buffer + used, MAX_PEM_BYTES - 1 - used)) != 0; used += (size_t)got)
    if (got < 0) return rl_fail_errno(err, "%s can't be read", path);
  buffer[used] = '\0';
  *text = rl_steal(&buffer);
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
  rl_auto(rl_close_descriptor) int descriptor =
      socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, found->ai_protocol);
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
  rlim_t needed = (rlim_t)connections + OTHER_DESCRIPTORS;
  if (getrlimit(RLIMIT_NOFILE, &limit) < 0) return rl_fail_errno(err, "the limit of open files can't be read");
  if (limit.rlim_cur >= needed) return 0;
  if (limit.rlim_max < needed)
    return rl_fail(err, RL_INPUT, 0,
                   "connection_limit %lld needs %llu open files and the limit is %llu: lower connection_limit or raise the limit",
                   (long long)connections, (unsigned long long)needed, (unsigned long long)limit.rlim_max);
  limit.rlim_cur = needed;
  return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? rl_fail_errno(err, "the limit of open files can't be raised") : 0;
}

static struct MHD_Daemon *start_mhd(rl_server *server, unsigned flags, unsigned connections, const struct MHD_OptionItem *more) {
  flags |= MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC | MHD_USE_ERROR_LOG;
  return MHD_start_daemon(flags, 0, NULL, NULL, serve, server, MHD_OPTION_EXTERNAL_LOGGER, http_log, NULL,
                          MHD_OPTION_CONNECTION_LIMIT, connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                          (size_t)CONNECTION_MEMORY_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
                          (unsigned)server->config->request_timeout_s, MHD_OPTION_STRICT_FOR_CLIENT, 1,
                          MHD_OPTION_NOTIFY_CONNECTION, connection_changed, server, MHD_OPTION_NOTIFY_COMPLETED, end_call, server,
                          MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL, MHD_OPTION_ARRAY, more, MHD_OPTION_END);
}

/* Limits the connections of one address, so that one client can't occupy all of them. 0: no limit; behind a proxy and on loopback
 * all clients have the same address. */
static unsigned max_connections_per_address(const rl_config *config) {
  if (rl_config_loopback(config) || config->behind_proxy) return 0;
  return (unsigned)(config->connection_limit + MIN_ADDRESSES - 1) / MIN_ADDRESSES;
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
      {MHD_OPTION_LISTEN_SOCKET, server->listen_fd, NULL},
      {MHD_OPTION_THREAD_POOL_SIZE, threads > 1 ? threads : 0, NULL},
      {MHD_OPTION_PER_IP_CONNECTION_LIMIT, max_connections_per_address(config), NULL},
      {tls ? MHD_OPTION_HTTPS_MEM_CERT : MHD_OPTION_END, 0, server->certificate},
      {MHD_OPTION_HTTPS_MEM_KEY, 0, server->key},
      {MHD_OPTION_END, 0, NULL},
  };
  server->client_http = start_mhd(server, tls ? MHD_USE_TLS : 0, (unsigned)config->connection_limit, options);
  if (server->client_http != NULL) return 0;
  server->listen_fd = -1; /* MHD has closed it */
  return rl_fail(err, RL_SYS, 0, "the HTTP server can't be started%s",
                 tls ? ": are tls_certificate and tls_key a pair of PEM files?" : "");
}

/* The same handlers without a listening socket: clients can't use up these connections. */
static int start_probe_http(rl_server *server, rl_error *err) {
  static const struct MHD_OptionItem no_options[] = {{MHD_OPTION_END, 0, NULL}};
  server->probe_http = start_mhd(server, MHD_USE_NO_LISTEN_SOCKET, MAX_PROBES, no_options);
  return server->probe_http != NULL ? 0 : rl_fail(err, RL_SYS, 0, "the HTTP server can't be started");
}

int rl_server_probe(rl_server *server, rl_error *err) {
  const struct sockaddr_un unnamed = {.sun_family = AF_UNIX};
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) < 0)
    return rl_fail_errno(err, "can't make a connection for a probe");
  if (MHD_add_connection(server->probe_http, ends[0], (const struct sockaddr *)&unnamed, sizeof unnamed) == MHD_YES)
    return ends[1];
  close(ends[1]); /* MHD has closed ends[0] */
  return rl_fail(err, RL_SYS, 0, "the HTTP server accepts no connection for a probe");
}

int rl_server_check_liveness(rl_server *server, int64_t limit_ns, rl_error *err) {
  int threads = server->client_thread_count;
  if (rl_connections_count_held(server->connections, rl_monotonic_ns() - limit_ns) < threads) return 0;
  return rl_fail(err, RL_HTTP, 0, "all %d threads that serve clients have been in one request each for %.1f s", threads,
                 (double)limit_ns / (double)second_ns);
}

static int allocate_members(rl_server *server, rl_error *err) {
  server->connections = rl_connections_new();
  server->event_streams = rl_event_streams_new(server->config->connection_limit / 2);
  server->statistics = rl_http_statistics_new();
  server->login_sessions = rl_login_sessions_new();
  if (server->connections != NULL && server->event_streams != NULL && server->statistics != NULL &&
      server->login_sessions != NULL)
    return 0;
  return rl_fail(err, RL_SYS, 0, "out of memory for the HTTP server");
}

int rl_server_open(const rl_config *config, rl_store *store, rl_queue *queue, rl_supervisor *supervisor, rl_server **server,
                   int *port, rl_error *err) {
  server_with_ticker *with = calloc(1, sizeof *with);
  if (with == NULL) return rl_fail(err, RL_SYS, 0, "out of memory for the HTTP server");
  rl_auto(rl_server_cleanup) rl_server *opened = &with->server;
  int port_in_use = 0;
  *opened = (rl_server){.config = config, .store = store, .queue = queue, .supervisor = supervisor, .listen_fd = -1};
  opened->web_folder_fd = open(config->web, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
  if (allocate_members(opened, err) < 0 || check_exposure(opened, err) < 0) return -1;
  if (raise_descriptor_limit(config->connection_limit, err) < 0) return -1;
  if (open_listener(config, &opened->listen_fd, &port_in_use, err) < 0) return -1;
  if (start_client_http(opened, err) < 0 || start_probe_http(opened, err) < 0 || start_ticker(with, err) < 0) return -1;
  rl_queue_set_listener(queue, rl_event_streams_notify, opened->event_streams);
  *port = port_in_use;
  *server = rl_steal(&opened);
  return 0;
}

static void wait_for_replies(const rl_server *server) {
  int64_t deadline_ns = rl_monotonic_ns() + CLOSE_WAIT_MS * INT64_C(1000000);
  while (rl_http_statistics_active(server->statistics) > 0 && rl_monotonic_ns() < deadline_ns) usleep(5000);
}

void rl_server_close(rl_server *server) {
  if (server == NULL) return;
  server_with_ticker *with = (server_with_ticker *)server;
  atomic_store(&server->stopping, true);
  if (server->client_http != NULL) {
    MHD_quiesce_daemon(server->client_http);
    rl_event_streams_stop(server->event_streams);
    wait_for_replies(server);
    rl_queue_set_listener(server->queue, NULL, NULL);
  }
  stop_ticker(&with->ticker);
  if (server->client_http != NULL) MHD_stop_daemon(server->client_http);
  if (server->probe_http != NULL) MHD_stop_daemon(server->probe_http);
  if (server->listen_fd >= 0) close(server->listen_fd);
  if (server->web_folder_fd >= 0) close(server->web_folder_fd);
  rl_login_sessions_free(server->login_sessions);
  rl_http_statistics_free(server->statistics);
  rl_event_streams_free(server->event_streams);
  rl_connections_free(server->connections);
  free(server->certificate);
  free(server->key);
  free(with);
}
