/* libmicrohttpd behind the route table: listening, TLS, limits, and the life of a request. */
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

#include "api/internal.h"
#include "base/clock.h"
#include "base/log.h"

enum {
  HTTP_THREADS = 4,
  PROBES_MOST = 4,               /* of our own, at a time */
  ADDRESS_SHARE = 4,             /* one client's address may have 1 / so many of the connections */
  HEADERS_BYTES = 32 << 10,      /* of memory per connection: request line, headers, and the reply's */
  DROPPED_BODY_BYTES = 64 << 20, /* a refused body is read up to here, so that the client can read the answer */
  ANSWER_S = 120,                /* time a client has to take an answer; events excepted */
  FAREWELL_MS = 700,             /* time that answers under way get when the daemon stops */
  SEND_BUFFER_BYTES = 128 << 10, /* of the kernel per connection; its own choice is megabytes, for each slow reader */
  DESCRIPTORS_BESIDES = 256,     /* files, databases and pipes besides connections */
  PEM_BYTES = 1 << 20
};
static const int64_t SECOND_NS = 1000000000;

typedef struct server_with_clock { /* the clock is nobody else's business */
  rl_server server;
  pthread_t clock;
  bool clock_runs, ending;
  pthread_mutex_t lock;
  pthread_cond_t end;
} server_with_clock;

/* --- the life of a connection and of a request ------------------------------------------------------------------------- */

static void connection_changed(void *context, struct MHD_Connection *connection, void **record,
                               enum MHD_ConnectionNotificationCode what) {
  rl_server *server = context;
  if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
    rl_connection_remove(server->connections, *record);
    return;
  }
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  *record =
      rl_connection_add(server->connections, info->connect_fd, rl_monotonic_ns() + server->config->request_timeout_s * SECOND_NS);
}

static rl_call *call_new(rl_server *server, struct MHD_Connection *connection, rl_connection *record, const char *method,
                         const char *path) {
  rl_call *call = calloc(1, sizeof *call);
  if (call == NULL) return NULL;
  call->server = server;
  call->connection = connection;
  call->record = record;
  call->begun_ns = rl_monotonic_ns();
  snprintf(call->method, sizeof call->method, "%s", method);
  snprintf(call->path, sizeof call->path, "%s", path);
  rl_metrics_begin(server->metrics);
  rl_call_begin(call);
  return call;
}

/* Must a refusal be sent before the body has come? Yes when the client waits for leave to send it, or would send too much. */
static bool answer_early(const rl_call *call) {
  int64_t length = 0;
  const char *text = rl_call_header(call, "Content-Length");
  if (!call->refused) return false;
  return rl_call_header(call, "Expect") != NULL ||
         (text != NULL && (!rl_decimal_parse(text, &length) || length > DROPPED_BODY_BYTES));
}

static enum MHD_Result call_goes_on(rl_call *call, const char *data, size_t *size) {
  rl_server *server = call->server;
  if (*size > 0) {
    rl_call_receive(call, data, *size);
    *size = 0;
    return MHD_YES;
  }
  rl_connection_deadline(server->connections, call->record, rl_monotonic_ns() + ANSWER_S * SECOND_NS);
  return rl_call_answer(call);
}

static rl_connection *record_of(struct MHD_Connection *connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static enum MHD_Result serve(void *context, struct MHD_Connection *connection, const char *path, const char *method,
                             const char *version, const char *data, size_t *size, void **state) {
  rl_server *server = context;
  rl_connection *record = record_of(connection);
  enum MHD_Result result = MHD_NO;
  (void)version;
  rl_connection_enter(server->connections, record, rl_monotonic_ns());
  if (*state != NULL) {
    result = call_goes_on(*state, data, size);
  } else {
    rl_call *call = *state = call_new(server, connection, record, method, path);
    if (call != NULL) result = answer_early(call) ? rl_call_answer(call) : MHD_YES;
  }
  rl_connection_leave(server->connections, record);
  return result;
}

static void request_done(void *context, struct MHD_Connection *connection, void **state, enum MHD_RequestTerminationCode why) {
  rl_server *server = context;
  rl_call *call = *state;
  (void)connection, (void)why;
  if (call == NULL) return;
  int64_t now = rl_monotonic_ns();
  rl_metrics_end(server->metrics, call->route != NULL ? (int)(call->route - rl_routes) : -1, call->status, now - call->begun_ns);
  rl_connection_deadline(server->connections, call->record, now + server->config->request_timeout_s * SECOND_NS);
  rl_call_free(call);
  *state = NULL;
}

/* Percent-decoding, but a NUL stays encoded: decoded, it would end the text for us and not for the sender. */
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

/* --- the clock: deadlines and keep-alives, once a second --------------------------------------------------------------- */

static void *tick(void *context) {
  server_with_clock *with = context;
  pthread_mutex_lock(&with->lock);
  while (!with->ending) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec++;
    pthread_cond_timedwait(&with->end, &with->lock, &until);
    rl_connections_sweep(with->server.connections, rl_monotonic_ns());
    rl_events_tick(with->server.events, rl_monotonic_ns());
  }
  pthread_mutex_unlock(&with->lock);
  return NULL;
}

static int clock_start(server_with_clock *with, rl_error *err) {
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_mutex_init(&with->lock, NULL);
  pthread_cond_init(&with->end, &monotonic);
  pthread_condattr_destroy(&monotonic);
  int rc = pthread_create(&with->clock, NULL, tick, with);
  if (rc != 0) return rl_fail(err, RL_SYS, rc, "the clock's thread can't be started: %s", strerror(rc));
  with->clock_runs = true;
  return 0;
}

static void clock_stop(server_with_clock *with) {
  if (!with->clock_runs) return;
  pthread_mutex_lock(&with->lock);
  with->ending = true;
  pthread_cond_signal(&with->end);
  pthread_mutex_unlock(&with->lock);
  pthread_join(with->clock, NULL);
  pthread_cond_destroy(&with->end);
  pthread_mutex_destroy(&with->lock);
}

/* --- opening ----------------------------------------------------------------------------------------------------------- */

/* Beyond loopback only with a token and either TLS or a proxy that does it. */
static int check_exposure(rl_server *server, rl_error *err) {
  const rl_config *config = server->config;
  int64_t tokens = 0;
  server->token_needed = !rl_config_loopback(config) || config->require_token || config->behind_proxy;
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
  rl_auto(rl_free_text) char *buffer = malloc(PEM_BYTES);
  if (buffer == NULL) return rl_fail(err, RL_SYS, 0, "out of memory for %s", path);
  size_t used = 0;
  for (ssize_t got; (got = read(file, buffer + used, PEM_BYTES - 1 - used)) != 0; used += (size_t)got)
    if (got < 0) return rl_fail_errno(err, "%s can't be read", path);
  buffer[used] = '\0';
  *text = rl_steal(&buffer);
  return 0;
}

static int listen_on(const rl_config *config, int *listener, int *port, rl_error *err) {
  struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
  struct addrinfo *found = NULL;
  char service[16], name[16];
  snprintf(service, sizeof service, "%lld", (long long)config->port);
  int rc = getaddrinfo(config->address, service, &hints, &found);
  if (rc != 0) return rl_fail(err, RL_INPUT, 0, "address %s: %s", config->address, gai_strerror(rc));
  rl_auto(rl_close_descriptor) int descriptor =
      socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, found->ai_protocol);
  struct sockaddr_storage got;
  socklen_t length = sizeof got;
  bool bound = descriptor >= 0 && setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) == 0 &&
               setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &(int){SEND_BUFFER_BYTES}, sizeof(int)) == 0 &&
               bind(descriptor, found->ai_addr, found->ai_addrlen) == 0 && listen(descriptor, SOMAXCONN) == 0 &&
               getsockname(descriptor, (struct sockaddr *)&got, &length) == 0;
  freeaddrinfo(found);
  if (!bound) return rl_fail_errno(err, "can't listen on %s port %s (--port chooses another)", config->address, service);
  getnameinfo((struct sockaddr *)&got, length, NULL, 0, name, sizeof name, NI_NUMERICSERV);
  *port = atoi(name);
  *listener = descriptor;
  descriptor = -1;
  return 0;
}

/* Connections cost descriptors; the usual soft limit of 1024 is for programs that use select(). */
static int make_room(int64_t connections, rl_error *err) {
  struct rlimit limit;
  rlim_t wanted = (rlim_t)connections + DESCRIPTORS_BESIDES;
  if (getrlimit(RLIMIT_NOFILE, &limit) < 0) return rl_fail_errno(err, "the limit of open files can't be read");
  if (limit.rlim_cur >= wanted) return 0;
  if (limit.rlim_max < wanted)
    return rl_fail(err, RL_INPUT, 0,
                   "connection_limit %lld needs %llu open files and the limit is %llu: lower the one or raise the other",
                   (long long)connections, (unsigned long long)wanted, (unsigned long long)limit.rlim_max);
  limit.rlim_cur = wanted;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? 0 : rl_fail_errno(err, "the limit of open files can't be raised");
}

static struct MHD_Daemon *http_start(rl_server *server, unsigned flags, unsigned connections, const struct MHD_OptionItem *more) {
  flags |= MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC | MHD_USE_ERROR_LOG;
  return MHD_start_daemon(flags, 0, NULL, NULL, serve, server, MHD_OPTION_EXTERNAL_LOGGER, http_log, NULL,
                          MHD_OPTION_CONNECTION_LIMIT, connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADERS_BYTES,
                          MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)server->config->request_timeout_s,
                          MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION, connection_changed, server,
                          MHD_OPTION_NOTIFY_COMPLETED, request_done, server, MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL,
                          MHD_OPTION_ARRAY, more, MHD_OPTION_END);
}

/* So that one client can't take every place from the others; where all come from one address, through a proxy or from this host,
 * there is no telling them apart. 0: no limit. */
static unsigned connections_of_an_address(const rl_config *config) {
  if (rl_config_loopback(config) || config->behind_proxy) return 0;
  return (unsigned)(config->connection_limit + ADDRESS_SHARE - 1) / ADDRESS_SHARE;
}

static int public_start(rl_server *server, rl_error *err) {
  const rl_config *config = server->config;
  bool tls = config->tls_certificate[0] != '\0';
  if (tls && read_pem(config->tls_certificate, &server->certificate, err) < 0) return -1;
  if (tls && read_pem(config->tls_key, &server->key, err) < 0) return -1;
  /* MHD divides the limit between its threads, and a thread that is full leaves newcomers to the others. */
  unsigned threads = config->connection_limit < HTTP_THREADS ? (unsigned)config->connection_limit : HTTP_THREADS;
  server->threads = (int)threads;
  const struct MHD_OptionItem more[] = {
      {MHD_OPTION_LISTEN_SOCKET, server->listener, NULL},
      {MHD_OPTION_THREAD_POOL_SIZE, threads > 1 ? threads : 0, NULL},
      {MHD_OPTION_PER_IP_CONNECTION_LIMIT, connections_of_an_address(config), NULL},
      {tls ? MHD_OPTION_HTTPS_MEM_CERT : MHD_OPTION_END, 0, server->certificate},
      {MHD_OPTION_HTTPS_MEM_KEY, 0, server->key},
      {MHD_OPTION_END, 0, NULL},
  };
  server->http = http_start(server, tls ? MHD_USE_TLS : 0, (unsigned)config->connection_limit, more);
  if (server->http != NULL) return 0;
  server->listener = -1; /* MHD has closed it */
  return rl_fail(err, RL_SYS, 0, "the HTTP server can't be started%s",
                 tls ? ": are tls_certificate and tls_key a pair of PEM files?" : "");
}

/* The same handlers for connections that only we can make: however many clients there are, these find a place. */
static int probed_start(rl_server *server, rl_error *err) {
  static const struct MHD_OptionItem nothing[] = {{MHD_OPTION_END, 0, NULL}};
  server->probed = http_start(server, MHD_USE_NO_LISTEN_SOCKET, PROBES_MOST, nothing);
  return server->probed != NULL ? 0 : rl_fail(err, RL_SYS, 0, "the HTTP server can't be started");
}

int rl_server_probe(rl_server *server, rl_error *err) {
  const struct sockaddr_un nowhere = {.sun_family = AF_UNIX};
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) < 0)
    return rl_fail_errno(err, "can't make a connection to ourselves");
  if (MHD_add_connection(server->probed, ends[0], (const struct sockaddr *)&nowhere, sizeof nowhere) == MHD_YES) return ends[1];
  close(ends[1]); /* MHD has closed the other */
  return rl_fail(err, RL_SYS, 0, "the HTTP server takes no connection of our own");
}

int rl_server_moves(rl_server *server, int64_t patience_ns, rl_error *err) {
  if (rl_connections_held(server->connections, rl_monotonic_ns() - patience_ns) < server->threads) return 0;
  return rl_fail(err, RL_HTTP, 0, "all %d threads that serve clients have been at one request each for %.1f s", server->threads,
                 (double)patience_ns / (double)SECOND_NS);
}

int rl_server_open(const rl_config *config, rl_store *store, rl_queue *jobs, rl_supervisor *supervisor, rl_server **server,
                   int *port, rl_error *err) {
  server_with_clock *with = calloc(1, sizeof *with);
  if (with == NULL) return rl_fail(err, RL_SYS, 0, "out of memory for the HTTP server");
  rl_auto(rl_server_cleanup) rl_server *opened = &with->server;
  int got = 0;
  *opened = (rl_server){.config = config, .store = store, .jobs = jobs, .supervisor = supervisor, .listener = -1};
  opened->web = open(config->web, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
  opened->connections = rl_connections_new();
  opened->events = rl_events_new(config->connection_limit / 2);
  opened->metrics = rl_metrics_new();
  opened->sessions = rl_sessions_new();
  if (opened->connections == NULL || opened->events == NULL || opened->metrics == NULL || opened->sessions == NULL)
    return rl_fail(err, RL_SYS, 0, "out of memory for the HTTP server");
  if (check_exposure(opened, err) < 0 || make_room(config->connection_limit, err) < 0 ||
      listen_on(config, &opened->listener, &got, err) < 0 || public_start(opened, err) < 0 || probed_start(opened, err) < 0 ||
      clock_start(with, err) < 0)
    return -1;
  rl_queue_set_listener(jobs, rl_events_heard, opened->events);
  *port = got;
  *server = rl_steal(&opened);
  return 0;
}

/* Answers under way may finish, for a moment; idle connections need no farewell. */
static void wait_for_answers(rl_server *server) {
  int64_t until = rl_monotonic_ns() + FAREWELL_MS * INT64_C(1000000);
  while (rl_metrics_active(server->metrics) > 0 && rl_monotonic_ns() < until) usleep(5000);
}

void rl_server_close(rl_server *server) {
  if (server == NULL) return;
  server_with_clock *with = (server_with_clock *)server;
  atomic_store(&server->stopping, true);
  if (server->http != NULL) {
    MHD_quiesce_daemon(server->http);
    rl_events_stop(server->events);
    wait_for_answers(server);
    rl_queue_set_listener(server->jobs, NULL, NULL);
  }
  clock_stop(with);
  if (server->http != NULL) MHD_stop_daemon(server->http);
  if (server->probed != NULL) MHD_stop_daemon(server->probed);
  if (server->listener >= 0) close(server->listener);
  if (server->web >= 0) close(server->web);
  rl_sessions_free(server->sessions);
  rl_metrics_free(server->metrics);
  rl_events_free(server->events);
  rl_connections_free(server->connections);
  free(server->certificate);
  free(server->key);
  free(with);
}
