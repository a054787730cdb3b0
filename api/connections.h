/* Tracks the open connections of the HTTP server (libmicrohttpd, MHD) and their deadlines. A client must send a whole request
 * within request_timeout_s after it has connected or has got a reply, and must read a reply within 120 s. The server shuts down a
 * connection past its deadline, so that slow and idle clients don't occupy all connections. (MHD's own time-out restarts at each
 * byte, so it does not stop a client that sends slowly.) The module also records when a thread of MHD began to serve a
 * connection. Such a thread never waits for a client, so rl_server_check_liveness takes it for stuck if it serves one connection
 * for too long.
 *
 * A connection is abandoned when its client has closed its sending side. MHD 0.9.75 does not notice this in two cases. First,
 * after a read that returns less than the buffer holds, MHD waits for the next edge-triggered epoll event, although the last
 * event may have reported the end of file too. Second, MHD does not watch a suspended connection. So this module watches all
 * sockets and wakes MHD to read the end of file. Thread-safe. */
#ifndef RL_API_CONNECTIONS_H
#define RL_API_CONNECTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "api/http_syntax.h"
#include "base/cleanup.h"
#include "base/error.h"

typedef struct rl_connections rl_connections;
typedef struct rl_connection rl_connection;

/* Resources that requests in progress use while they wait for their clients. The daemon limits how much all of them use together;
 * the clients without recorded progress for longest lose. For a reply, only its begin is recorded, so the clients whose replies
 * began longest ago lose, even if they read steadily. Otherwise clients that read a byte at a time would keep all memory, or
 * the write-ahead log of old snapshots. */
typedef enum rl_resource {
  RL_RESOURCE_BODY_BYTES, /* memory of request bodies */
  RL_RESOURCE_UPLOADS,    /* uploads of which a part is in a file */
  RL_RESOURCE_REPLIES,    /* replies from the body cache that are being sent */
  RL_RESOURCE_SNAPSHOTS,  /* streamed replies, each of which reads one snapshot of the database */
  RL_RESOURCE_COUNT
} rl_resource;

/* limit: maximum number of open connections. If more than seven eighths of it are open, each new connection evicts the
 * connection that has never sent a complete request and is oldest; if there is none, the connection that has been idle longest
 * after a reply. Returns NULL on failure. */
rl_connections *rl_connections_new(int64_t limit, rl_error *err);
void rl_connections_free(rl_connections *connections);
/* Adds a connection, whose descriptor the caller closes after rl_connection_remove. Returns NULL if memory is exhausted. If
 * `connection` is NULL, the functions below do nothing, and rl_connection_begin_request returns true. */
rl_connection *rl_connection_add(rl_connections *connections, int descriptor, int64_t deadline_ns);
void rl_connection_remove(rl_connections *connections, rl_connection *connection);
/* Sets the deadline, a time of rl_monotonic_ns; 0: no deadline. */
void rl_connection_set_deadline(rl_connections *connections, rl_connection *connection, int64_t deadline_ns);
/* Returns how many of `limit` connections the requests of one client address may use: a quarter. */
int64_t rl_connections_max_per_address(int64_t limit);
/* Called when the client has sent a complete request, or gets a refusal before it has sent the body. address: the client's
 * address if a proxy named it, else NULL. Returns false if requests of this address already use a quarter of the limit of
 * connections; the request must then be refused. */
bool rl_connection_begin_request(rl_connections *connections, rl_connection *connection, const rl_client_address *address,
                                 int64_t deadline_ns);
/* Called when the reply has been sent. deadline_ns: deadline of the next request. */
void rl_connection_end_request(rl_connections *connections, rl_connection *connection, int64_t deadline_ns);
/* Limits the amount of the resource that all connections use together; initially there is no limit. patience_ns: a client
 * whose progress was recorded within this time does not lose its connection. */
void rl_connections_limit_resource(rl_connections *connections, rl_resource resource, int64_t limit, int64_t patience_ns);
/* Records that the connection's request uses this amount in total (0: none), and that its client has just made progress. If all
 * connections together then exceed the limit, shuts down those without recorded progress for longest. Returns false, records
 * nothing and shuts down none if this would not be enough, or if the connection itself was shut down. The amount is in use until
 * rl_connection_end_request.
 */
bool rl_connection_use_resource(rl_connections *connections, rl_connection *connection, rl_resource resource, int64_t amount,
                                int64_t now_ns);
/* Returns whether rl_connection_use_resource would now accept an amount of 1 from another connection. */
bool rl_connections_have_resource(rl_connections *connections, rl_resource resource, int64_t now_ns);
/* Shuts down the connection that uses the resource and has no recorded progress for longest. Returns false if all have progress
 * within the resource's patience. */
bool rl_connections_shut_down_stalled(rl_connections *connections, rl_resource resource, int64_t now_ns);
/* Called when the daemon begins to work on what a client has sent. The connection is then not shut down for its resources until
 * rl_connection_use_resource. rl_connection_begin_request has the same effect. */
void rl_connection_begin_work(rl_connections *connections, rl_connection *connection);
/* Called by MHD's thread before and after it works on a request of the connection. */
void rl_connection_begin_service(rl_connections *connections, rl_connection *connection, int64_t now_ns);
void rl_connection_end_service(rl_connections *connections, rl_connection *connection);
/* Returns the number of connections that a thread has been serving since since_ns or earlier. */
int64_t rl_connections_count_busy_since(rl_connections *connections, int64_t since_ns);
/* Shuts down connections past their deadline. A connection whose input MHD has not read gets RL_CONNECTION_GRACE_NS more, because
 * then the daemon is late, not the client; for example, the daemon's threads wait for a slow disk. */
#define RL_CONNECTION_GRACE_NS INT64_C(60000000000)
void rl_connections_shut_down_late(rl_connections *connections, int64_t now_ns);
/* Returns a descriptor that becomes readable when a connection has been abandoned. */
int rl_connections_abandoned_descriptor(const rl_connections *connections);
/* Marks the newly abandoned connections and wakes MHD, which closes those that wait for a request. Returns true if it marked a
 * connection. Sets *again to true if MHD has not read all input of an abandoned connection; the caller then calls again some
 * milliseconds later. */
bool rl_connections_release_abandoned(rl_connections *connections, bool *again);
bool rl_connection_is_abandoned(rl_connections *connections, const rl_connection *connection); /* false for NULL */
int64_t rl_connections_count(rl_connections *connections);

#endif
