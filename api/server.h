/* The HTTP server: one route table drives dispatch, 404/405, validation, the OpenAPI check and the test that every route is
 * exercised. It knows jobs, store and supervisor, and only reads from the latter two. */
#ifndef RL_API_SERVER_H
#define RL_API_SERVER_H

#include "base/cleanup.h"
#include "config.h"
#include "queue/queue.h"
#include "store/store.h"
#include "supervisor/supervisor.h"

typedef struct rl_server rl_server;

/* Listens when it returns. *port: the one it got. Refuses (RL_INPUT) to listen beyond loopback without a token and TLS or
 * behind_proxy. */
int rl_server_open(const rl_config *config, rl_store *store, rl_queue *jobs, rl_supervisor *supervisor, rl_server **server,
                   int *port, rl_error *err);
/* A connection that the server answers besides all of its clients': its descriptor, non-blocking, which the caller closes; -1. */
int rl_server_probe(rl_server *server, rl_error *err);
/* -1 when the threads that serve clients have all been at one request for so long: clients wait, nobody comes back to them. */
int rl_server_moves(rl_server *server, int64_t patience_ns, rl_error *err);
/* Ends SSE streams, finishes what is being answered, closes. */
void rl_server_close(rl_server *server);

RL_DEFINE_CLEANUP(rl_server_cleanup, rl_server *, rl_server_close, NULL)
#endif
