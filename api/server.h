/* The HTTP server, which the daemon's main function opens and closes. The route table (routes.h) maps a request to its handler; a
 * test compares the table with openapi.json. Handlers submit and cancel jobs (through the queue) and suite runs (through the
 * suite runner), and store labels and baselines. Otherwise they only read from the store and the supervisor. */
#ifndef RL_API_SERVER_H
#define RL_API_SERVER_H

#include "base/cleanup.h"
#include "config.h"
#include "queue/queue.h"
#include "store/store.h"
#include "supervisor/supervisor.h"
#include "upload/spool.h"

typedef struct rl_server rl_server;

/* The objects that handlers use. */
typedef struct rl_server_parts {
  rl_store *store;
  rl_queue *queue;
  rl_upload_spool *uploads;
  rl_supervisor *supervisor;
  struct rl_suites *suites;
  struct rl_suite_runner *suite_runner;
} rl_server_parts;

/* Starts the server. Sets *port to the port on which the server listens. config and the objects in parts must outlive the server.
 * Fails with RL_INPUT if the address is not loopback, and either there is no token, or neither TLS nor behind_proxy is set. */
int rl_server_open(const rl_config *config, const rl_server_parts *parts, rl_server **server, int *port, rl_error *err);
/* Opens a connection to the server for a health check; the limits on clients' connections don't apply to it. Returns a
 * non-blocking descriptor, which the caller closes, or -1. */
int rl_server_connect_probe(rl_server *server, rl_error *err);
/* Fails if all threads that serve clients, or all threads of a pool, have each been busy with one request for at least
 * limit_ns. */
int rl_server_check_liveness(rl_server *server, int64_t limit_ns, rl_error *err);
/* Ends event streams, gives replies in progress 0.7 s to finish, and closes all connections. Accepts NULL. */
void rl_server_close(rl_server *server);

RL_DEFINE_CLEANUP(rl_server_cleanup, rl_server *, rl_server_close, NULL)
#endif
