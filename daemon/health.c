#include "health.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

enum { ANSWER_WAIT_MS = 10000 };
static const char request[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
static const char good[] = "HTTP/1.1 200 ";

static int ask(int connection, rl_error *err) {
  char answer[sizeof good - 1];
  size_t used = 0;
  int64_t until_ns = rl_monotonic_ns() + ANSWER_WAIT_MS * INT64_C(1000000);
  if (send(connection, request, sizeof request - 1, 0) != sizeof request - 1) return rl_fail_errno(err, "can't ask for /healthz");
  while (used < sizeof answer) {
    int64_t left_ms = (until_ns - rl_monotonic_ns()) / 1000000;
    struct pollfd entry = {.fd = connection, .events = POLLIN};
    if (left_ms <= 0 || poll(&entry, 1, (int)left_ms) == 0) return rl_fail(err, RL_HTTP, 0, "/healthz does not answer");
    ssize_t got = recv(connection, answer + used, sizeof answer - used, 0);
    if (got == 0) break;
    if (got > 0) used += (size_t)got;
  }
  if (used == sizeof answer && memcmp(answer, good, used) == 0) return 0;
  return rl_fail(err, RL_HTTP, 0, "/healthz answers \"%.*s\"", (int)used, answer);
}

int rl_health_check(rl_server *server, rl_store *store, int64_t patience_ns, rl_error *err) {
  rl_job_counts counts;
  if (rl_server_moves(server, patience_ns, err) < 0) return -1;
  rl_auto(rl_close_descriptor) int connection = rl_server_probe(server, err);
  return connection < 0 || ask(connection, err) < 0 || rl_store_jobs_count(store, &counts, err) < 0 ? -1 : 0;
}
