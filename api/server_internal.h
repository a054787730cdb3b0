/* The server's state, which dispatch.c and the handlers use. */
#ifndef RL_API_SERVER_INTERNAL_H
#define RL_API_SERVER_INTERNAL_H

#include <microhttpd.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "config.h"
#include "queue/queue.h"
#include "store/store.h"
#include "supervisor/supervisor.h"
#include "upload/spool.h"

struct rl_body_cache;
struct rl_connections;
struct rl_event_streams;
struct rl_http_statistics;
struct rl_login_sessions;
struct rl_request_pools;
struct rl_suite_runner;
struct rl_suites;

struct rl_server {
  const rl_config *config;
  rl_store *store;
  rl_queue *queue;
  rl_upload_spool *uploads;
  rl_supervisor *supervisor;
  struct rl_suites *suites;
  struct rl_suite_runner *suite_runner;
  struct MHD_Daemon *client_http; /* listens for clients */
  struct MHD_Daemon *probe_http;  /* has only the connections that rl_server_connect_probe makes */
  char *certificate, *key;        /* PEM text; NULL without TLS */
  int listen_fd;
  int web_folder_fd;       /* folder with the web page; -1: it does not exist */
  int client_thread_count; /* threads of client_http */
  bool token_required;
  atomic_bool stopping, interrupt_queries; /* interrupt_queries: queries of requests must end at once, because the server no
                                              longer waits for replies in progress */
  atomic_int streamed_replies;             /* number of streamed replies in progress; each uses a database connection */
  atomic_bool log_is_large;                /* queries keep the write-ahead log from being reset, so no long read may begin */
  struct rl_request_pools *pools;
  struct rl_body_cache *body_cache;
  _Atomic uint64_t cache_hits, cache_misses;
  struct rl_connections *connections;
  struct rl_event_streams *event_streams;
  struct rl_http_statistics *statistics;
  struct rl_login_sessions *login_sessions;
};

/* Fails with RL_LIMIT_BUSY while no long read may begin. Called before the work of a heavy request and before a streamed reply.
 */
int rl_server_check_log(const rl_server *server, rl_error *err);

#endif
