/* prober PORT: measures how long GET /healthz and POST /jobs take while other clients use the daemon. Each of four threads sends
 * a request every few milliseconds. A time begins when the request was due, not when it was sent: if the daemon stalls, the stall
 * counts for every request that was due in it. Ends when standard input is closed, and prints JSON. */
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

/* A request that a thread repeats, and the results. */
typedef struct request_loop {
  const char *name, *request;
  bool keeps_connection; /* else each request has a new connection */
  int64_t interval_ms;
  int count, ok, unavailable, failed; /* requests; with status 2xx; with 503; with another status or no answer */
  int64_t *times_ns;                  /* of `count` requests */
} request_loop;

#define HOST "Host: 127.0.0.1\r\n"
#define JOB "{\"kind\":\"train\",\"device\":\"gpu0\",\"precisions\":[\"fp32\"],\"passes\":[\"timing\"]}"
#define POST "POST /jobs HTTP/1.1\r\n" HOST "Content-Type: application/json\r\nContent-Length: 74\r\n\r\n" JOB
_Static_assert(sizeof JOB - 1 == 74, "Content-Length");

static request_loop loops[] = {
    {"healthz, kept connection", "GET /healthz HTTP/1.1\r\n" HOST "\r\n", true, 5, 0, 0, 0, 0, NULL},
    {"healthz, new connections", "GET /healthz HTTP/1.1\r\n" HOST "\r\n", false, 5, 0, 0, 0, 0, NULL},
    {"POST /jobs, kept connection", POST, true, 20, 0, 0, 0, 0, NULL},
    {"POST /jobs, new connections", POST, false, 20, 0, 0, 0, 0, NULL},
};
enum { LOOPS = sizeof loops / sizeof *loops };

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

/* Returns the end of the response in text, or NULL if the response is incomplete. */
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

/* Adds the result of a request. status: 0 if it had no response; its time is then the longest for which a loop waits. */
static void add_result(request_loop *loop, int64_t due_ns, int status) {
  if (loop->count == MAX_TIMES) return;
  loop->times_ns[loop->count++] = status != 0 ? now_ns() - due_ns : MAX_WAIT_S * 1000 * MS;
  loop->ok += status / 100 == 2;
  loop->unavailable += status == 503;
  loop->failed += status / 100 != 2 && status != 503;
}

static void sleep_until(int64_t at_ns) {
  const struct timespec at = {.tv_sec = at_ns / 1000000000, .tv_nsec = at_ns % 1000000000};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static void *run_loop(void *context) {
  request_loop *loop = context;
  int descriptor = -1, status = 0;
  int64_t due_ns = now_ns();
  for (; !atomic_load(&stopping); due_ns += loop->interval_ms * MS) {
    sleep_until(due_ns);
    if (descriptor < 0) descriptor = open_connection();
    status = send_and_receive(descriptor, loop->request);
    add_result(loop, due_ns, status);
    if (descriptor >= 0 && (status == 0 || !loop->keeps_connection)) close(descriptor), descriptor = -1;
  }
  /* Requests that were due during the last request and were never sent count with its status. */
  for (; due_ns < now_ns(); due_ns += loop->interval_ms * MS) add_result(loop, due_ns, status);
  if (descriptor >= 0) close(descriptor);
  return NULL;
}

static int compare_times(const void *a, const void *b) {
  int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
  return (left > right) - (left < right);
}

static void print_loop(const request_loop *loop, const char *separator) {
  qsort(loop->times_ns, (size_t)loop->count, sizeof *loop->times_ns, compare_times);
  printf(
      "{\"name\":\"%s\",\"requests\":%d,\"ok\":%d,\"unavailable\":%d,\"failed\":%d,\"p50_ms\":%.2f,\"p99_ms\":%.2f,"
      "\"max_ms\":%.2f}%s",
      loop->name, loop->count, loop->ok, loop->unavailable, loop->failed, (double)loop->times_ns[loop->count / 2] / 1e6,
      (double)loop->times_ns[(int64_t)loop->count * 99 / 100] / 1e6, (double)loop->times_ns[loop->count - 1] / 1e6, separator);
}

int main(int argc, char **argv) {
  pthread_t threads[LOOPS];
  char byte;
  if (argc != 2 || (port = (uint16_t)strtoul(argv[1], NULL, 10)) == 0) {
    fprintf(stderr, "usage: prober PORT\n");
    return 2;
  }
  for (int i = 0; i < LOOPS; i++) {
    loops[i].times_ns = calloc(MAX_TIMES, sizeof *loops[i].times_ns);
    if (loops[i].times_ns == NULL || pthread_create(&threads[i], NULL, run_loop, &loops[i]) != 0) return 1;
  }
  while (read(STDIN_FILENO, &byte, 1) > 0) continue;
  atomic_store(&stopping, true);
  printf("[");
  for (int i = 0; i < LOOPS; i++) {
    pthread_join(threads[i], NULL);
    print_loop(&loops[i], i + 1 < LOOPS ? "," : "]\n");
    free(loops[i].times_ns);
  }
  return 0;
}
