/* Implements connections.h. A connection is in one of four states: it waits for its first request, has a request in progress, is
 * idle after a reply, or is evicted. If almost all connections are in use, a new connection evicts the one that has waited
 * longest for a request. If a limited resource is short, the connection that uses it without recorded progress for longest is
 * evicted. */
#include "api/connections.h"

#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"

enum {
  MAX_EVENTS = 64,           /* for each epoll_wait */
  RESERVE_DIVISOR = 8,       /* an eighth of the connections is a reserve: connections beyond the rest cause evictions */
  ADDRESS_SHARE_DIVISOR = 4, /* one client address may use a quarter of the connections */
  ADDRESS_SLOTS = 16384,
  NO_SLOT = -1
};

/* The amount of a resource that a connection uses. */
typedef struct resource_use {
  rl_connection *connection;
  int64_t amount, progress_ns;
  bool waits_for_client; /* is in the resource's list `waiting` */
  TAILQ_ENTRY(resource_use) link;
} resource_use;

typedef struct limited_resource {
  int64_t limit, used, patience_ns;
  TAILQ_HEAD(, resource_use) waiting; /* uses that wait for their clients, the one with the oldest recorded progress first */
} limited_resource;

struct rl_connection {
  int descriptor;
  int64_t deadline_ns;
  int64_t serving_since_ns;          /* monotonic time at which a thread began to serve the connection; 0: no thread serves it */
  bool is_abandoned;                 /* the client has closed its sending side */
  bool has_unread_input;             /* the connection is abandoned and MHD has not yet read all of its input */
  struct waiting_list *waiting_list; /* without_request, idle, or NULL: a request is in progress, or the connection is evicted */
  bool is_evicted;                   /* the daemon has shut it down to make space, and MHD has not closed it yet */
  resource_use uses[RL_RESOURCE_COUNT];
  int address_slot; /* index of the request in progress in address_requests; NO_SLOT: none */
  LIST_ENTRY(rl_connection) link, unread_link;
  TAILQ_ENTRY(rl_connection) waiting_link;
};

TAILQ_HEAD(waiting_list, rl_connection); /* connections without a complete request, the longest waiting first */

struct rl_connections {
  pthread_mutex_t lock;
  LIST_HEAD(, rl_connection) all, unread;    /* all connections, and those with has_unread_input */
  struct waiting_list without_request, idle; /* without_request: waits for its first request; idle: a reply was sent */
  int64_t count, evicted_count;
  int64_t limit;
  limited_resource resources[RL_RESOURCE_COUNT];
  int epoll_fd; /* watches all connections */
  /* Numbers of requests in progress by the hash of their client's address. The hash has a secret key, so that clients can't
   * choose their slot. */
  unsigned char address_key[crypto_shorthash_KEYBYTES];
  int address_requests[ADDRESS_SLOTS];
};

rl_connections *rl_connections_new(int64_t limit, rl_error *err) {
  RL_CLEANUP(rl_close_descriptor) int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  rl_connections *connections = calloc(1, sizeof *connections);
  if (connections == NULL || epoll_fd < 0) {
    rl_fail_errno(err, "the table of connections can't be made");
    free(connections);
    return NULL;
  }
  pthread_mutex_init(&connections->lock, NULL);
  LIST_INIT(&connections->all);
  LIST_INIT(&connections->unread);
  TAILQ_INIT(&connections->without_request);
  TAILQ_INIT(&connections->idle);
  crypto_shorthash_keygen(connections->address_key);
  connections->limit = limit;
  for (int i = 0; i < RL_RESOURCE_COUNT; i++) {
    connections->resources[i].limit = INT64_MAX;
    TAILQ_INIT(&connections->resources[i].waiting);
  }
  connections->epoll_fd = epoll_fd;
  epoll_fd = -1;
  return connections;
}

void rl_connections_free(rl_connections *connections) {
  if (connections == NULL) return;
  while (!LIST_EMPTY(&connections->all)) rl_connection_remove(connections, LIST_FIRST(&connections->all));
  pthread_mutex_destroy(&connections->lock);
  close(connections->epoll_fd);
  free(connections);
}

/* Adds the connection to the epoll set. epoll reports only one event for it (EPOLLONESHOT); otherwise a later shutdown by the
 * daemon would look like a shutdown by the client. */
static int watch_for_end_of_file(const rl_connections *connections, rl_connection *connection) {
  struct epoll_event event = {.events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = connection};
  return epoll_ctl(connections->epoll_fd, EPOLL_CTL_ADD, connection->descriptor, &event);
}

static void remove_from_unread(rl_connection *connection) {
  if (connection->has_unread_input) LIST_REMOVE(connection, unread_link);
  connection->has_unread_input = false;
}

static void leave_waiting_list(rl_connection *connection) {
  if (connection->waiting_list != NULL) TAILQ_REMOVE(connection->waiting_list, connection, waiting_link);
  connection->waiting_list = NULL;
}

static void join_waiting_list(struct waiting_list *list, rl_connection *connection) {
  leave_waiting_list(connection);
  if (connection->is_evicted) return;
  TAILQ_INSERT_TAIL(list, connection, waiting_link);
  connection->waiting_list = list;
}

static void end_wait_for_client(limited_resource *resource, resource_use *use) {
  if (use->waits_for_client) TAILQ_REMOVE(&resource->waiting, use, link);
  use->waits_for_client = false;
}

static void release_resource(rl_connections *connections, rl_connection *connection, int resource) {
  end_wait_for_client(&connections->resources[resource], &connection->uses[resource]);
  connections->resources[resource].used -= connection->uses[resource].amount;
  connection->uses[resource].amount = 0;
}

/* Returns how many connections may be open before a new connection evicts an older one: seven eighths of the limit. */
static int64_t eviction_threshold(const rl_connections *connections) {
  int64_t count = connections->limit - (connections->limit + RESERVE_DIVISOR - 1) / RESERVE_DIVISOR;
  return count > 0 ? count : 1;
}

/* Shuts down a connection that is not evicted yet. MHD's thread gets EPOLLHUP and closes it. */
static void evict(rl_connections *connections, rl_connection *connection) {
  leave_waiting_list(connection);
  connection->is_evicted = true;
  connections->evicted_count++;
  for (int i = 0; i < RL_RESOURCE_COUNT; i++) release_resource(connections, connection, i);
  shutdown(connection->descriptor, SHUT_RDWR);
}

/* Above the threshold, shuts down the connection that has waited longest, except the new one. */
static void evict_if_crowded(rl_connections *connections, const rl_connection *newest) {
  if (connections->count - connections->evicted_count <= eviction_threshold(connections)) return;
  rl_connection *oldest = TAILQ_FIRST(&connections->without_request);
  if (oldest == newest) oldest = TAILQ_FIRST(&connections->idle);
  if (oldest != NULL) evict(connections, oldest);
}

static void release_address_slot(rl_connections *connections, rl_connection *connection) {
  if (connection->address_slot != NO_SLOT) connections->address_requests[connection->address_slot]--;
  connection->address_slot = NO_SLOT;
}

int64_t rl_connections_max_per_address(int64_t limit) { return (limit + ADDRESS_SHARE_DIVISOR - 1) / ADDRESS_SHARE_DIVISOR; }

/* Counts a request of the address. Returns false if the address has too many requests in progress. */
static bool claim_address_slot(rl_connections *connections, rl_connection *connection, const rl_client_address *address) {
  uint64_t hash;
  crypto_shorthash((unsigned char *)&hash, address->bytes, sizeof address->bytes, connections->address_key);
  int slot = (int)(hash % ADDRESS_SLOTS);
  release_address_slot(connections, connection);
  if (connections->address_requests[slot] >= rl_connections_max_per_address(connections->limit)) return false;
  connections->address_requests[slot]++;
  connection->address_slot = slot;
  return true;
}

void rl_connections_limit_resource(rl_connections *connections, rl_resource resource, int64_t limit, int64_t patience_ns) {
  connections->resources[resource].limit = limit;
  connections->resources[resource].patience_ns = patience_ns;
}

static bool is_stalled(const limited_resource *resource, const resource_use *use, int64_t now_ns) {
  return now_ns - use->progress_ns >= resource->patience_ns;
}

/* Returns the connection to shut down if the resource is short: the one that has waited for its client longest. NULL: none has
 * waited long enough. */
static rl_connection *find_stalled(const limited_resource *resource, int64_t now_ns) {
  const resource_use *oldest = TAILQ_FIRST(&resource->waiting);
  return oldest != NULL && is_stalled(resource, oldest, now_ns) ? oldest->connection : NULL;
}

/* Returns whether `added` more of the resource can be used if stalled connections except `user` are shut down. */
static bool can_make_space(const limited_resource *resource, const rl_connection *user, int64_t added, int64_t now_ns) {
  const resource_use *use;
  int64_t missing = resource->used + added - resource->limit;
  TAILQ_FOREACH (use, &resource->waiting, link) {
    if (missing <= 0 || !is_stalled(resource, use, now_ns)) break;
    if (use->connection != user) missing -= use->amount;
  }
  return missing <= 0;
}

/* Shuts down stalled connections until `added` more of the resource can be used. */
static void make_space(rl_connections *connections, const limited_resource *resource, int64_t added, int64_t now_ns) {
  rl_connection *stalled;
  while (resource->used + added > resource->limit && (stalled = find_stalled(resource, now_ns)) != NULL)
    evict(connections, stalled);
}

/* The caller holds the lock. */
static bool use_resource(rl_connections *connections, rl_connection *connection, rl_resource number, int64_t amount,
                         int64_t now_ns) {
  limited_resource *resource = &connections->resources[number];
  resource_use *use = &connection->uses[number];
  int64_t added = amount - use->amount;
  if (connection->is_evicted || !can_make_space(resource, connection, added, now_ns)) return false;
  end_wait_for_client(resource, use); /* so that make_space does not shut down this connection */
  make_space(connections, resource, added, now_ns);
  resource->used += added;
  *use = (resource_use){.connection = connection, .amount = amount, .progress_ns = now_ns, .waits_for_client = amount > 0};
  if (use->waits_for_client) TAILQ_INSERT_TAIL(&resource->waiting, use, link);
  return true;
}

bool rl_connection_use_resource(rl_connections *connections, rl_connection *connection, rl_resource resource, int64_t amount,
                                int64_t now_ns) {
  if (connection == NULL) return true;
  pthread_mutex_lock(&connections->lock);
  bool fits = use_resource(connections, connection, resource, amount, now_ns);
  pthread_mutex_unlock(&connections->lock);
  return fits;
}

bool rl_connections_have_resource(rl_connections *connections, rl_resource number, int64_t now_ns) {
  const limited_resource *resource = &connections->resources[number];
  pthread_mutex_lock(&connections->lock);
  bool available = can_make_space(resource, NULL, 1, now_ns);
  pthread_mutex_unlock(&connections->lock);
  return available;
}

bool rl_connections_shut_down_stalled(rl_connections *connections, rl_resource resource, int64_t now_ns) {
  pthread_mutex_lock(&connections->lock);
  rl_connection *stalled = find_stalled(&connections->resources[resource], now_ns);
  if (stalled != NULL) evict(connections, stalled);
  pthread_mutex_unlock(&connections->lock);
  return stalled != NULL;
}

static void end_all_waits_for_client(rl_connections *connections, rl_connection *connection) {
  for (int i = 0; i < RL_RESOURCE_COUNT; i++) end_wait_for_client(&connections->resources[i], &connection->uses[i]);
}

void rl_connection_begin_work(rl_connections *connections, rl_connection *connection) {
  if (connection == NULL) return;
  pthread_mutex_lock(&connections->lock);
  end_all_waits_for_client(connections, connection);
  pthread_mutex_unlock(&connections->lock);
}

rl_connection *rl_connection_add(rl_connections *connections, int descriptor, int64_t deadline_ns) {
  rl_connection *connection = malloc(sizeof *connection);
  if (connection == NULL) return NULL;
  *connection = (rl_connection){.descriptor = descriptor, .deadline_ns = deadline_ns, .address_slot = NO_SLOT};
  for (int i = 0; i < RL_RESOURCE_COUNT; i++) connection->uses[i].connection = connection;
  pthread_mutex_lock(&connections->lock);
  LIST_INSERT_HEAD(&connections->all, connection, link);
  connections->count++;
  join_waiting_list(&connections->without_request, connection);
  evict_if_crowded(connections, connection);
  int rc = watch_for_end_of_file(connections, connection);
  pthread_mutex_unlock(&connections->lock);
  if (rc < 0) rl_log(RL_LOG_WARNING, "a connection can't be watched: %s", strerror(errno));
  return connection;
}

void rl_connection_remove(rl_connections *connections, rl_connection *connection) {
  if (connection == NULL) return;
  pthread_mutex_lock(&connections->lock);
  LIST_REMOVE(connection, link);
  remove_from_unread(connection);
  leave_waiting_list(connection);
  release_address_slot(connections, connection);
  for (int i = 0; i < RL_RESOURCE_COUNT; i++) release_resource(connections, connection, i);
  connections->count--;
  connections->evicted_count -= connection->is_evicted;
  epoll_ctl(connections->epoll_fd, EPOLL_CTL_DEL, connection->descriptor, NULL);
  pthread_mutex_unlock(&connections->lock);
  free(connection);
}

void rl_connection_set_deadline(rl_connections *connections, rl_connection *connection, int64_t deadline_ns) {
  if (connection == NULL) return;
  pthread_mutex_lock(&connections->lock);
  connection->deadline_ns = deadline_ns;
  pthread_mutex_unlock(&connections->lock);
}

bool rl_connection_begin_request(rl_connections *connections, rl_connection *connection, const rl_client_address *address,
                                 int64_t deadline_ns) {
  if (connection == NULL) return true;
  pthread_mutex_lock(&connections->lock);
  leave_waiting_list(connection);
  end_all_waits_for_client(connections, connection);
  connection->deadline_ns = deadline_ns;
  bool accepted = address == NULL || claim_address_slot(connections, connection, address);
  pthread_mutex_unlock(&connections->lock);
  return accepted;
}

void rl_connection_end_request(rl_connections *connections, rl_connection *connection, int64_t deadline_ns) {
  if (connection == NULL) return;
  pthread_mutex_lock(&connections->lock);
  release_address_slot(connections, connection);
  for (int i = 0; i < RL_RESOURCE_COUNT; i++) release_resource(connections, connection, i);
  join_waiting_list(&connections->idle, connection);
  connection->deadline_ns = deadline_ns;
  pthread_mutex_unlock(&connections->lock);
}

static void set_serving_since(rl_connections *connections, rl_connection *connection, int64_t serving_since_ns) {
  if (connection == NULL) return;
  pthread_mutex_lock(&connections->lock);
  connection->serving_since_ns = serving_since_ns;
  pthread_mutex_unlock(&connections->lock);
}

void rl_connection_begin_service(rl_connections *connections, rl_connection *connection, int64_t now_ns) {
  set_serving_since(connections, connection, now_ns);
}

void rl_connection_end_service(rl_connections *connections, rl_connection *connection) {
  set_serving_since(connections, connection, 0);
}

int64_t rl_connections_count_busy_since(rl_connections *connections, int64_t since_ns) {
  const rl_connection *connection;
  int64_t count = 0;
  pthread_mutex_lock(&connections->lock);
  LIST_FOREACH (connection, &connections->all, link)
    count += connection->serving_since_ns != 0 && connection->serving_since_ns <= since_ns;
  pthread_mutex_unlock(&connections->lock);
  return count;
}

static bool input_is_read(const rl_connection *connection) {
  int unread = 0;
  return ioctl(connection->descriptor, FIONREAD, &unread) < 0 || unread == 0;
}

/* Returns true if the client has missed the deadline. If MHD has not read the connection's input, the daemon is late, and the
 * client has until RL_CONNECTION_GRACE_NS after the deadline. */
static bool is_late(const rl_connection *connection, int64_t now_ns) {
  if (connection->deadline_ns == 0 || connection->deadline_ns > now_ns) return false;
  return now_ns - connection->deadline_ns >= RL_CONNECTION_GRACE_NS || input_is_read(connection);
}

void rl_connections_shut_down_late(rl_connections *connections, int64_t now_ns) {
  rl_connection *connection;
  pthread_mutex_lock(&connections->lock);
  LIST_FOREACH (connection, &connections->all, link)
    if (is_late(connection, now_ns)) {
      /* MHD's thread reads the end of file and closes the connection. */
      shutdown(connection->descriptor, SHUT_RDWR);
      connection->deadline_ns = 0;
    }
  pthread_mutex_unlock(&connections->lock);
}

int rl_connections_abandoned_descriptor(const rl_connections *connections) { return connections->epoll_fd; }

/* Calls epoll_wait once and marks the reported connections as abandoned. Returns false if epoll reported none. The caller holds
 * the lock, so that rl_connection_remove can't free a reported connection meanwhile. */
static bool mark_abandoned(rl_connections *connections) {
  struct epoll_event events[MAX_EVENTS];
  int count = epoll_wait(connections->epoll_fd, events, MAX_EVENTS, 0);
  for (int i = 0; i < count; i++) {
    rl_connection *connection = events[i].data.ptr;
    if (!connection->is_abandoned) LIST_INSERT_HEAD(&connections->unread, connection, unread_link);
    connection->is_abandoned = connection->has_unread_input = true;
  }
  return count > 0;
}

/* Shuts down reading, which wakes MHD, if MHD has already read all input. While input is unread, a shutdown would be reported in
 * the same edge-triggered event as the input, and MHD would miss it. Writing stays open, because the client may still read its
 * reply. */
static void shut_down_reading(rl_connection *connection) {
  if (!input_is_read(connection)) return;
  remove_from_unread(connection);
  shutdown(connection->descriptor, SHUT_RD);
}

bool rl_connections_release_abandoned(rl_connections *connections, bool *again) {
  rl_connection *connection, *next;
  bool found = false;
  pthread_mutex_lock(&connections->lock);
  while (mark_abandoned(connections)) found = true;
  for (connection = LIST_FIRST(&connections->unread); connection != NULL; connection = next) {
    next = LIST_NEXT(connection, unread_link);
    shut_down_reading(connection);
  }
  *again = !LIST_EMPTY(&connections->unread);
  pthread_mutex_unlock(&connections->lock);
  return found;
}

bool rl_connection_is_abandoned(rl_connections *connections, const rl_connection *connection) {
  if (connection == NULL) return false;
  pthread_mutex_lock(&connections->lock);
  bool is_abandoned = connection->is_abandoned;
  pthread_mutex_unlock(&connections->lock);
  return is_abandoned;
}

int64_t rl_connections_count(rl_connections *connections) {
  pthread_mutex_lock(&connections->lock);
  int64_t count = connections->count;
  pthread_mutex_unlock(&connections->lock);
  return count;
}
