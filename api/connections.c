#include "api/connections.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/queue.h>
#include <sys/socket.h>

struct rl_connection {
  int descriptor;
  int64_t deadline_ns;
  int64_t taken_ns; /* when the thread that is at it took it up; 0: none is */
  LIST_ENTRY(rl_connection) link;
};

struct rl_connections {
  pthread_mutex_t lock;
  LIST_HEAD(, rl_connection) list;
  int64_t count;
};

rl_connections *rl_connections_new(void) {
  rl_connections *connections = calloc(1, sizeof *connections);
  if (connections == NULL) return NULL;
  pthread_mutex_init(&connections->lock, NULL);
  LIST_INIT(&connections->list);
  return connections;
}

void rl_connections_free(rl_connections *connections) {
  if (connections == NULL) return;
  while (!LIST_EMPTY(&connections->list)) rl_connection_remove(connections, LIST_FIRST(&connections->list));
  pthread_mutex_destroy(&connections->lock);
  free(connections);
}

rl_connection *rl_connection_add(rl_connections *connections, int descriptor, int64_t deadline_ns) {
  rl_connection *connection = malloc(sizeof *connection);
  if (connection == NULL) return NULL;
  *connection = (rl_connection){.descriptor = descriptor, .deadline_ns = deadline_ns};
  pthread_mutex_lock(&connections->lock);
  LIST_INSERT_HEAD(&connections->list, connection, link);
  connections->count++;
  pthread_mutex_unlock(&connections->lock);
  return connection;
}

void rl_connection_remove(rl_connections *connections, rl_connection *connection) {
  if (connection == NULL) return;
  pthread_mutex_lock(&connections->lock);
  LIST_REMOVE(connection, link);
  connections->count--;
  pthread_mutex_unlock(&connections->lock);
  free(connection);
}

void rl_connection_deadline(rl_connections *connections, rl_connection *connection, int64_t deadline_ns) {
  if (connection == NULL) return;
  pthread_mutex_lock(&connections->lock);
  connection->deadline_ns = deadline_ns;
  pthread_mutex_unlock(&connections->lock);
}

static void take(rl_connections *connections, rl_connection *connection, int64_t taken_ns) {
  if (connection == NULL) return;
  pthread_mutex_lock(&connections->lock);
  connection->taken_ns = taken_ns;
  pthread_mutex_unlock(&connections->lock);
}

void rl_connection_enter(rl_connections *connections, rl_connection *connection, int64_t now_ns) {
  take(connections, connection, now_ns);
}

void rl_connection_leave(rl_connections *connections, rl_connection *connection) { take(connections, connection, 0); }

int64_t rl_connections_held(rl_connections *connections, int64_t since_ns) {
  const rl_connection *connection;
  int64_t count = 0;
  pthread_mutex_lock(&connections->lock);
  LIST_FOREACH(connection, &connections->list, link) count += connection->taken_ns != 0 && connection->taken_ns <= since_ns;
  pthread_mutex_unlock(&connections->lock);
  return count;
}

/* Input that nobody has read yet shows that the daemon is late, and not the client. */
static bool late(const rl_connection *connection, int64_t now_ns) {
  int unread = 0;
  if (connection->deadline_ns == 0 || connection->deadline_ns > now_ns) return false;
  if (now_ns - connection->deadline_ns >= RL_CONNECTION_GRACE_NS) return true;
  return ioctl(connection->descriptor, FIONREAD, &unread) < 0 || unread == 0;
}

void rl_connections_sweep(rl_connections *connections, int64_t now_ns) {
  rl_connection *connection;
  pthread_mutex_lock(&connections->lock);
  LIST_FOREACH(connection, &connections->list, link)
  if (late(connection, now_ns)) {
    /* The thread that serves it sees the end of file and closes it. */
    shutdown(connection->descriptor, SHUT_RDWR);
    connection->deadline_ns = 0;
  }
  pthread_mutex_unlock(&connections->lock);
}

int64_t rl_connections_open(rl_connections *connections) {
  pthread_mutex_lock(&connections->lock);
  int64_t count = connections->count;
  pthread_mutex_unlock(&connections->lock);
  return count;
}
