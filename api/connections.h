/* Every open connection and the time by which it must have moved on: a whole request within request_timeout_s of opening or of
 * the last answer, and an answer taken within a bound. A connection that is late is shut down, so slow senders and idle ones give
 * their place back. MHD's own time-out restarts at each byte, which a slow sender exploits. And since when a thread has been at
 * it: threads never wait for clients, so one that does not come back is stuck. Thread-safe. */
#ifndef RL_API_CONNECTIONS_H
#define RL_API_CONNECTIONS_H

#include <stdint.h>

#include "base/cleanup.h"

typedef struct rl_connections rl_connections;
typedef struct rl_connection rl_connection;

rl_connections *rl_connections_new(void); /* NULL when memory is out */
void rl_connections_free(rl_connections *connections);
/* descriptor stays the caller's; it must be open until rl_connection_remove. NULL when memory is out. */
rl_connection *rl_connection_add(rl_connections *connections, int descriptor, int64_t deadline_ns);
void rl_connection_remove(rl_connections *connections, rl_connection *connection); /* NULL is allowed */
/* rl_monotonic_ns; 0: no deadline. */
void rl_connection_deadline(rl_connections *connections, rl_connection *connection, int64_t deadline_ns);
/* A thread takes the connection up, and comes back from it. NULL is allowed. */
void rl_connection_enter(rl_connections *connections, rl_connection *connection, int64_t now_ns);
void rl_connection_leave(rl_connections *connections, rl_connection *connection);
/* How many connections a thread took up by then and has not come back from. */
int64_t rl_connections_held(rl_connections *connections, int64_t since_ns);
/* Shut down what is late. Where input waits to be read, the daemon is behind (its threads wait for a slow disk): that connection
 * has a minute more. */
#define RL_CONNECTION_GRACE_NS INT64_C(60000000000)
void rl_connections_sweep(rl_connections *connections, int64_t now_ns);
int64_t rl_connections_open(rl_connections *connections);

#endif
