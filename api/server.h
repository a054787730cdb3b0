/* The HTTP server. One route table drives dispatch, 404 and 405, validation, the check of openapi.json and the test that every
 * route is exercised. Handlers submit and cancel jobs in the queue, and only read from the store and the supervisor. */
#ifndef RL_API_SERVER_H
#define RL_API_SERVER_H

#include "base/cleanup.h"
#include "config.h"
#include "queue/queue.h"
#include "store/store.h"
#include "supervisor/supervisor.h"

typedef struct rl_server rl_server;

/* Starts to listen; *port is the port in use. RL_INPUT for an address beyond loopback without a token, or without TLS or
 * behind_proxy. config, store, queue and supervisor must outlive the server. */
int rl_server_open(const rl_config *config, rl_store *store, rl_queue *queue, rl_supervisor *supervisor, rl_server **server,
                   int *port, rl_error *err);
/* Opens a connection to the server's handlers that does not count among the clients' connections. Returns a non-blocking
 * descriptor, which the caller closes, or -1. */
int rl_server_probe(rl_server *server, rl_error *err);
/* -1 when every thread that serves clients has been in one request for at least limit_ns. */
int rl_server_check_liveness(rl_server *server, int64_t limit_ns, rl_error *err);
/* Ends event streams, gives replies in progress 0.7 s to finish, closes. Accepts NULL. */
void rl_server_close(rl_server *server);

RL_DEFINE_CLEANUP(rl_server_cleanup, rl_server *, rl_server_close, NULL)
#endif
