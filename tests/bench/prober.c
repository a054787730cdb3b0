/* Measures how long GET /healthz and POST /jobs take while others use the daemon: prober PORT. Each of four threads has a request
 * due every few milliseconds; a time counts from the moment at which the request was due, so that one long wait counts for all
 * requests that were due in it. Ends when standard input is closed, and prints JSON. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_TIMES = 200000, MAX_WAIT_S = 15, BUFFER = 16384 };
static const int64_t MS = 1000000;
static uint16_t port;
static atomic_bool stopping;

typedef struct prober {
  const char *name, *request;
  bool keeps_connection;
  int64_t interval_ms;
  int count, ok, unavailable, failed; /* unavailable: status 503; failed: other status, or no answer */
  int64_t *times_ns;
} prober;

#define HOST "Host: 127.0.0.1\r\n"
#define JOB "{\"kind\":\"train\",\"device\":\"gpu0\",\"precisions\":[\"fp32\"],\"passes\":[\"timing\"]}"
#define POST "POST /jobs HTTP/1.1\r\n" HOST "Content-Type: application/json\r\nContent-Length: 74\r\n\r\n" JOB
_Static_assert(sizeof JOB - 1 == 74, "Content-Length");

static prober probers[] = {
    {"healthz, kept connection", "GET /healthz HTTP/1.1\r\n" HOST "\r\n", true, 5, 0, 0, 0, 0, NULL},
    {"healthz, new connections", "GET /healthz HTTP/1.1\r\n" HOST "\r\n", false, 5, 0, 0, 0, 0, NULL},
    {"POST /jobs, kept connection", POST, true, 20, 0, 0, 0, 0, NULL},
    {"POST /jobs, new connections", POST, false, 20, 0, 0, 0, 0, NULL},
};
enum { PROBERS = sizeof probers / sizeof *probers };

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int open_connection(void) {
  const struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  const struct timeval wait = {.tv_sec = MAX_WAIT_S};
  const int one = 1;
  int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (connect(descriptor, (const struct sockaddr *)&address, sizeof address) == 0) return descriptor;
  close(descriptor);
  return -1;
}

/* Returns the end of the response in text, or NULL while it is incomplete. */
static const char *find_end(const char *text) {
  const char *body = strstr(text, "\r\n\r\n"), *length = strcasestr(text, "\r\nContent-Length:");
  if (body == NULL) return NULL;
  const char *end = body + 4 + (length != NULL && length < body ? strtol(length + 17, NULL, 10) : 0);
  return strlen(text) >= (size_t)(end - text) ? end : NULL;
}

/* Sends a request and reads the response. Returns its status; returns 0 if the connection failed. */
static int send_and_receive(int descriptor, const char *request) {
  char text[BUFFER] = "";
  size_t used = 0;
  if (descriptor < 0 || send(descriptor, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request)) return 0;
  while (find_end(text) == NULL) {
    ssize_t size = recv(descriptor, text + used, sizeof text - 1 - used, 0);
    if (size <= 0) return 0;
    text[used += (size_t)size] = '\0';
  }
  return strncmp(text, "HTTP/1.1 ", 9) == 0 ? (int)strtol(text + 9, NULL, 10) : 0;
}

static void record_time(prober *self, int64_t due_ns, int status) {
  if (self->count == MAX_TIMES) return;
  /* A request without a response counts with the longest time for which the prober waits. */
  self->times_ns[self->count++] = status != 0 ? now_ns() - due_ns : MAX_WAIT_S * 1000 * MS;
  self->ok += status / 100 == 2;
  self->unavailable += status == 503;
  self->failed += status / 100 != 2 && status != 503;
}

static void sleep_until(int64_t at_ns) {
  const struct timespec at = {.tv_sec = at_ns / 1000000000, .tv_nsec = at_ns % 1000000000};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static void *probe(void *context) {
  prober *self = context;
  int descriptor = -1, status = 0;
  int64_t due_ns = now_ns();
  for (; !atomic_load(&stopping); due_ns += self->interval_ms * MS) {
    sleep_until(due_ns);
    if (descriptor < 0) descriptor = open_connection();
    status = send_and_receive(descriptor, self->request);
    record_time(self, due_ns, status);
    if (descriptor >= 0 && (status == 0 || !self->keeps_connection)) close(descriptor), descriptor = -1;
  }
  for (; due_ns < now_ns(); due_ns += self->interval_ms * MS) record_time(self, due_ns, status); /* due, and not sent */
  if (descriptor >= 0) close(descriptor);
  return NULL;
}

static int compare(const void *a, const void *b) {
  int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
  return (left > right) - (left < right);
}

static void print_prober(const prober *self, const char *separator) {
  qsort(self->times_ns, (size_t)self->count, sizeof *self->times_ns, compare);
  printf(
      "{\"name\":\"%s\",\"requests\":%d,\"ok\":%d,\"unavailable\":%d,\"failed\":%d,\"p50_ms\":%.2f,\"p99_ms\":%.2f,"
      "\"max_ms\":%.2f}%s",
      self->name, self->count, self->ok, self->unavailable, self->failed, (double)self->times_ns[self->count / 2] / 1e6,
      (double)self->times_ns[(int64_t)self->count * 99 / 100] / 1e6, (double)self->times_ns[self->count - 1] / 1e6, separator);
}

int main(int argc, char **argv) {
  pthread_t threads[PROBERS];
  char byte;
  if (argc != 2 || (port = (uint16_t)strtoul(argv[1], NULL, 10)) == 0) {
    fprintf(stderr, "usage: prober PORT\n");
    return 2;
  }
  for (int i = 0; i < PROBERS; i++) {
    probers[i].times_ns = calloc(MAX_TIMES, sizeof *probers[i].times_ns);
    if (probers[i].times_ns == NULL || pthread_create(&threads[i], NULL, probe, &probers[i]) != 0) return 1;
  }
  while (read(STDIN_FILENO, &byte, 1) > 0) continue;
  atomic_store(&stopping, true);
  printf("[");
  for (int i = 0; i < PROBERS; i++) {
    pthread_join(threads[i], NULL);
    print_prober(&probers[i], i + 1 < PROBERS ? "," : "]\n");
    free(probers[i].times_ns);
  }
  return 0;
}
