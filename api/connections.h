/* The open connections with their deadlines and the threads that serve them. A client must send a whole request within
 * request_timeout_s of connecting or of the last reply, and read a reply within a bound; a connection past its deadline is shut
 * down, so that slow and idle clients don't occupy all connections. (MHD's own time-out restarts at each byte, so it does not
 * stop a client that sends slowly.) The time at which a thread began to serve a connection shows threads that hang: they never
 * wait for clients. Thread-safe. */
#ifndef RL_API_CONNECTIONS_H
#define RL_API_CONNECTIONS_H

#include <stdint.h>

#include "base/cleanup.h"

typedef struct rl_connections rl_connections;
typedef struct rl_connection rl_connection;

rl_connections *rl_connections_new(void); /* NULL if memory is exhausted */
void rl_connections_free(rl_connections *connections);
/* Adds a connection, whose descriptor the caller closes after rl_connection_remove. NULL if memory is exhausted. The functions
 * below take this NULL. */
rl_connection *rl_connection_add(rl_connections *connections, int descriptor, int64_t deadline_ns);
void rl_connection_remove(rl_connections *connections, rl_connection *connection);
/* Sets the deadline, a time of rl_monotonic_ns; 0: none. */
void rl_connection_set_deadline(rl_connections *connections, rl_connection *connection, int64_t deadline_ns);
/* Record that a thread begins, and ends, serving the connection. */
void rl_connection_enter(rl_connections *connections, rl_connection *connection, int64_t now_ns);
void rl_connection_leave(rl_connections *connections, rl_connection *connection);
/* Returns the number of connections that a thread has been serving since since_ns or earlier. */
int64_t rl_connections_count_held(rl_connections *connections, int64_t since_ns);
/* Shuts down connections past their deadline. A connection with unread input gets RL_CONNECTION_GRACE_NS more: there the daemon
 * is late, because its threads wait for a slow disk. */
#define RL_CONNECTION_GRACE_NS INT64_C(60000000000)
void rl_connections_shut_late(rl_connections *connections, int64_t now_ns);
int64_t rl_connections_count(rl_connections *connections);

#endif
