/* Checks the server's threads, sends GET /healthz over a connection to the server, and reads the store. */
#include "health.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

enum { REPLY_TIMEOUT_MS = 10000 };
static const char request[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
static const char ok_status[] = "HTTP/1.1 200 ";

/* Reads `size` bytes of the reply, or fewer if the reply ends before. Returns the number of bytes; fails after
 * REPLY_TIMEOUT_MS. */
static ssize_t read_reply(int connection, char *reply, size_t size, rl_error *err) {
  size_t used = 0;
  int64_t deadline_ns = rl_monotonic_ns() + REPLY_TIMEOUT_MS * INT64_C(1000000);
  while (used < size) {
    int64_t left_ms = (deadline_ns - rl_monotonic_ns()) / 1000000;
    struct pollfd entry = {.fd = connection, .events = POLLIN};
    if (left_ms <= 0 || poll(&entry, 1, (int)left_ms) == 0) return rl_fail(err, RL_HTTP, 0, "/healthz does not answer");
    ssize_t byte_count = recv(connection, reply + used, size - used, 0);
    if (byte_count == 0) break;
    if (byte_count > 0) used += (size_t)byte_count;
  }
  return (ssize_t)used;
}

static int request_health(int connection, rl_error *err) {
  char reply[sizeof ok_status - 1];
  if (send(connection, request, sizeof request - 1, 0) != sizeof request - 1)
    return rl_fail_errno(err, "the request for /healthz can't be sent");
  ssize_t size = read_reply(connection, reply, sizeof reply, err);
  if (size < 0) return -1;
  if (size == sizeof reply && memcmp(reply, ok_status, sizeof reply) == 0) return 0;
  return rl_fail(err, RL_HTTP, 0, "/healthz answers \"%.*s\"", (int)size, reply);
}

int rl_health_check(rl_server *server, rl_store *store, int64_t request_limit_ns, rl_error *err) {
  rl_job_counts counts;
  if (rl_server_check_liveness(server, request_limit_ns, err) < 0) return -1;
  RL_CLEANUP(rl_close_descriptor) int connection = rl_server_connect_probe(server, err);
  if (connection < 0 || request_health(connection, err) < 0) return -1;
  return rl_store_count_jobs(store, &counts, err);
}
