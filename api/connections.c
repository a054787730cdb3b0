#include "api/connections.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/queue.h>
#include <sys/socket.h>

struct rl_connection {
  int descriptor;
  int64_t deadline_ns;
  int64_t serving_since_ns; /* 0: no thread serves it */
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

void rl_connection_set_deadline(rl_connections *connections, rl_connection *connection, int64_t deadline_ns) {
  if (connection == NULL) return;
  pthread_mutex_lock(&connections->lock);
  connection->deadline_ns = deadline_ns;
  pthread_mutex_unlock(&connections->lock);
}

static void set_serving_since(rl_connections *connections, rl_connection *connection, int64_t serving_since_ns) {
  if (connection == NULL) return;
  pthread_mutex_lock(&connections->lock);
  connection->serving_since_ns = serving_since_ns;
  pthread_mutex_unlock(&connections->lock);
}

void rl_connection_enter(rl_connections *connections, rl_connection *connection, int64_t now_ns) {
  set_serving_since(connections, connection, now_ns);
}

void rl_connection_leave(rl_connections *connections, rl_connection *connection) {
  set_serving_since(connections, connection, 0);
}

int64_t rl_connections_count_held(rl_connections *connections, int64_t since_ns) {
  const rl_connection *connection;
  int64_t count = 0;
  pthread_mutex_lock(&connections->lock);
  LIST_FOREACH (connection, &connections->list, link)
    count += connection->serving_since_ns != 0 && connection->serving_since_ns <= since_ns;
  pthread_mutex_unlock(&connections->lock);
  return count;
}

/* Unread input shows that the daemon is late, not the client. */
static bool is_late(const rl_connection *connection, int64_t now_ns) {
  int unread = 0;
  if (connection->deadline_ns == 0 || connection->deadline_ns > now_ns) return false;
  if (now_ns - connection->deadline_ns >= RL_CONNECTION_GRACE_NS) return true;
  return ioctl(connection->descriptor, FIONREAD, &unread) < 0 || unread == 0;
}

void rl_connections_shut_late(rl_connections *connections, int64_t now_ns) {
  rl_connection *connection;
  pthread_mutex_lock(&connections->lock);
  LIST_FOREACH (connection, &connections->list, link)
    if (is_late(connection, now_ns)) {
      /* MHD's thread reads the end of file and closes the connection. */
      shutdown(connection->descriptor, SHUT_RDWR);
      connection->deadline_ns = 0;
    }
  pthread_mutex_unlock(&connections->lock);
}

int64_t rl_connections_count(rl_connections *connections) {
  pthread_mutex_lock(&connections->lock);
  int64_t count = connections->count;
  pthread_mutex_unlock(&connections->lock);
  return count;
}
