/* A worker: frames in on standard input, frames out on what was standard output, for as long as the daemon keeps the pipe open.
 * The device, its engines, its profiler and its sensors are chosen by what this main is linked with.
 *
 * Two threads. The reader takes frames: CANCEL sets a flag that the running pass asks for, REQUEST goes to the main thread, end
 * of file ends the process at once, whatever it is doing. The main thread owns the device and writes every frame. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/commit.h"
#include "base/log.h"
#include "source/shelf.h"
#include "worker/session.h"
#include "wire/wire.h"

enum { EXIT_USAGE = 2, EXIT_UNUSABLE = 3, EXIT_DEVICE_LOST = 4, EXIT_PROTOCOL = 5 };

typedef enum errand { ERRAND_NONE, ERRAND_REQUEST, ERRAND_RELEASE } errand;

typedef struct inbox { /* from the reader to the main thread: at most one errand waits */
  pthread_mutex_t lock;
  pthread_cond_t filled;
  errand waiting;
  bool working;
  rl_request request;
  atomic_bool cancelled;
  rl_frame_reader *reader;
} inbox;

static int frames = -1; /* descriptor of the pipe to the daemon */

/* Whatever prints to standard output from now on (a library, posted device code) lands in the log, not among the frames. */
static int take_standard_output(void) {
  frames = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  return frames >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0 ? 0 : -1;
}

static _Noreturn void end_at_once(int code) { _exit(code); }

/* ---- the reader -------------------------------------------------------------------------------------------------------- */

/* request: NULL where the errand has none. */
static void accept_errand(inbox *box, errand what, const rl_request *request) {
  pthread_mutex_lock(&box->lock);
  if (box->waiting != ERRAND_NONE || box->working) {
    rl_log(RL_LOG_ERROR, "a frame came while a request was being served");
    end_at_once(EXIT_PROTOCOL);
  }
  if (request) box->request = *request;
  box->waiting = what;
  atomic_store(&box->cancelled, false);
  pthread_cond_signal(&box->filled);
  pthread_mutex_unlock(&box->lock);
}

static void accept_request(inbox *box, const rl_frame *frame) {
  rl_error err = {0};
  rl_request request = {0};
  if (rl_fields_parse(rl_request_fields, (const char *)frame->payload, frame->length, &request, sizeof request, &err)) {
    rl_log(RL_LOG_ERROR, "broken request: %s: %s", err.pointer, err.message);
    end_at_once(EXIT_PROTOCOL);
  }
  accept_errand(box, ERRAND_REQUEST, &request);
}

static void keep_source(const rl_frame *frame) {
  rl_error err = {0};
  if (rl_source_keep((const char *)frame->payload, frame->length, &err) == 0) return;
  rl_log(RL_LOG_ERROR, "can't take posted code: %s", err.message);
  end_at_once(EXIT_PROTOCOL);
}

static void *read_frames(void *context) {
  inbox *box = context;
  for (;;) {
    rl_frame frame;
    rl_error err = {0};
    if (rl_frame_read(box->reader, -1, &frame, &err)) {
      if (err.code == RL_WIRE_CLOSED) end_at_once(EXIT_SUCCESS);
      rl_log(RL_LOG_ERROR, "%s", err.message);
      end_at_once(EXIT_PROTOCOL);
    }
    if (frame.type == RL_FRAME_CANCEL) atomic_store(&box->cancelled, true);
    else if (frame.type == RL_FRAME_SOURCE) keep_source(&frame);
    else if (frame.type == RL_FRAME_REQUEST) accept_request(box, &frame);
    else if (frame.type == RL_FRAME_RELEASE) accept_errand(box, ERRAND_RELEASE, NULL);
    else {
      rl_log(RL_LOG_ERROR, "a frame of type %d is not for a worker", (int)frame.type);
      end_at_once(EXIT_PROTOCOL);
    }
  }
}

static errand next_errand(inbox *box, rl_request *request) {
  pthread_mutex_lock(&box->lock);
  while (box->waiting == ERRAND_NONE) pthread_cond_wait(&box->filled, &box->lock);
  errand what = box->waiting;
  *request = box->request;
  box->waiting = ERRAND_NONE;
  box->working = true;
  pthread_mutex_unlock(&box->lock);
  return what;
}

/* Before the last frame of an answer: the next request may follow on its heels. */
static void free_inbox(inbox *box) {
  pthread_mutex_lock(&box->lock);
  box->working = false;
  pthread_mutex_unlock(&box->lock);
}

/* ---- answers ----------------------------------------------------------------------------------------------------------- */

/* A daemon that no longer reads is gone: nothing is left to do. */
static void must_write(int rc, const rl_error *err) {
  if (rc == 0) return;
  rl_log(RL_LOG_ERROR, "can't answer: %s", err->message);
  end_at_once(EXIT_PROTOCOL);
}

static void send_message(rl_frame_type type, const rl_field *table, const void *message) {
  rl_error err = {0};
  must_write(rl_message_write(frames, type, table, message, &err), &err);
}

static void on_opened(void *context, const rl_run_facts *facts) {
  (void)context;
  send_message(RL_FRAME_FACTS, rl_run_facts_fields, facts);
}

static void on_progress(void *context, const rl_progress *progress) {
  (void)context;
  send_message(RL_FRAME_PROGRESS, rl_progress_fields, progress);
}

static void on_log(const char *text) {
  rl_error err = {0};
  if (text[0] != '\0') must_write(rl_frame_write(frames, RL_FRAME_LOG, text, strlen(text), &err), &err);
}

static bool on_cancelled(void *context) { return atomic_load_explicit(&((inbox *)context)->cancelled, memory_order_relaxed); }

static void answer(inbox *box, rl_outcome outcome, rl_records *records, const rl_error *why) {
  rl_error err = {0};
  rl_failure failure = {.code = why->code};
  snprintf(failure.domain, sizeof failure.domain, "%s", rl_domain_name(why->domain));
  snprintf(failure.message, sizeof failure.message, "%s%s%s", why->pointer, why->pointer[0] ? " " : "", why->message);
  if (outcome == RL_OUTCOME_DONE) {
    records->has_facts = false; /* they went ahead */
    must_write(rl_records_send(frames, records, &err), &err);
  }
  free_inbox(box);
  switch (outcome) {
    case RL_OUTCOME_DONE: must_write(rl_frame_write(frames, RL_FRAME_DONE, NULL, 0, &err), &err); break;
    case RL_OUTCOME_CANCELLED: must_write(rl_frame_write(frames, RL_FRAME_CANCELLED, NULL, 0, &err), &err); break;
    case RL_OUTCOME_UNAVAILABLE: send_message(RL_FRAME_UNAVAILABLE, rl_failure_fields, &failure); break;
    case RL_OUTCOME_FAILED: send_message(RL_FRAME_FAILED, rl_failure_fields, &failure); break;
  }
}

static void release(rl_service *service, inbox *box) {
  rl_error err = {0};
  rl_service_release(service);
  free_inbox(box);
  must_write(rl_frame_write(frames, RL_FRAME_RELEASED, NULL, 0, &err), &err);
}

/* false: the device is lost. */
static bool serve_request(rl_service *service, inbox *box, const rl_request *request) {
  rl_records records = {0};
  rl_error err = {0};
  rl_outcome outcome = rl_service_serve(service, request, &records, &err);
  if (outcome == RL_OUTCOME_FAILED)
    rl_log(RL_LOG_ERROR, "%s, %s: %s", request->workload, rl_pass_names[request->pass], err.message);
  answer(box, outcome, &records, &err);
  rl_records_clear(&records);
  return outcome != RL_OUTCOME_FAILED || err.domain == RL_INPUT || rl_service_healthy(service);
}

static int serve(rl_service *service, inbox *box) {
  for (;;) {
    rl_request request;
    if (next_errand(box, &request) == ERRAND_RELEASE) release(service, box);
    else if (!serve_request(service, box, &request)) {
      rl_log(RL_LOG_ERROR, "the device no longer answers: this worker ends");
      return EXIT_DEVICE_LOST;
    }
  }
}

/* ---- hello --------------------------------------------------------------------------------------------------------------- */

static void device_id(int index, char id[16]) {
  if (rl_engines[0]->description->device == RL_DEVICE_CPU) snprintf(id, 16, "cpu");
  else snprintf(id, 16, "gpu%d", index);
}

/* The index behind "cpu" or "gpu3"; -1 when it is no device of this program. */
static int device_index(const char *id) {
  char expected[16];
  int index = 0;
  if (strncmp(id, "gpu", 3) == 0) index = atoi(id + 3);
  device_id(index, expected);
  return strcmp(id, expected) == 0 ? index : -1;
}

static rl_hello hello_of(int index, const char *role) {
  rl_hello hello = {.protocol = RL_WIRE_VERSION, .commit = RL_COMMIT};
  snprintf(hello.program, sizeof hello.program, "%s", program_invocation_short_name);
  snprintf(hello.role, sizeof hello.role, "%s", role);
  device_id(index, hello.device);
  return hello;
}

static void give_up(rl_hello *hello, const rl_error *err) {
  hello->usable = false;
  snprintf(hello->reason, sizeof hello->reason, "%s", err->message);
}

/* Put the device's facts into hello and make it usable, or say why not. */
static void fill_hello(rl_hello *hello, int index) {
  rl_error err = {0};
  rl_auto(rl_free_text) char *facts = NULL;
  if (rl_device_count(&err) <= index) {
    if (!err.message[0]) rl_fail(&err, RL_INPUT, 0, "there is no device %s", hello->device);
  } else {
    facts = rl_device_facts(index, &err);
  }
  if (facts && strlen(facts) < sizeof hello->facts) {
    strcpy(hello->facts, facts);
    hello->usable = true;
  } else {
    if (facts) rl_fail(&err, RL_SYS, EOVERFLOW, "the facts of the device take %zu bytes", strlen(facts));
    give_up(hello, &err);
  }
}

static int list_devices(const char *role) {
  int count = rl_device_count(NULL);
  for (int i = 0; i < (count > 0 ? count : 1); i++) {
    rl_hello hello = hello_of(i, role);
    fill_hello(&hello, i);
    send_message(RL_FRAME_HELLO, rl_hello_fields, &hello);
  }
  return EXIT_SUCCESS;
}

/* ---- main ---------------------------------------------------------------------------------------------------------------- */

/* Open everything in the order that it must be opened in (the profiler first: it must be there before the device's first call),
 * say hello and serve. */
static int work(inbox *box, int index, const char *role) {
  rl_error err = {0}, profiler_err = {0};
  rl_service *service = NULL;
  rl_reading before = {.memory_used_bytes = NAN};
  rl_profiler *profiler = strcmp(role, "clean") == 0 ? NULL : rl_profiler_open(index, &profiler_err);
  const char *profiler_reason = profiler_err.message[0] ? profiler_err.message : "no profiler in the clean role";
  rl_hello hello = hello_of(index, role);
  fill_hello(&hello, index);
  rl_sensors *sensors = rl_sensors_open(hello.facts);
  if (sensors) rl_sensors_read(sensors, &before);
  rl_device *device = hello.usable ? rl_device_open(index, &err) : NULL;
  if (profiler) profiler->device = device;
  if (device) device->log = on_log;
  if (device) fill_hello(&hello, index); /* with what only an open device knows */
  rl_service_options options = {.device = device,
                                .profiler = profiler,
                                .sensors = sensors,
                                .role = role,
                                .profiler_reason = profiler_reason,
                                .before_bytes = before.memory_used_bytes,
                                .cancelled = on_cancelled,
                                .opened = on_opened,
                                .progress = on_progress,
                                .context = box};
  if (hello.usable && (!device || !sensors || rl_service_open(&options, &service, &err))) {
    if (!err.message[0]) rl_fail(&err, RL_SYS, ENOMEM, "out of memory for the worker");
    give_up(&hello, &err);
  }
  send_message(RL_FRAME_HELLO, rl_hello_fields, &hello);
  int code = hello.usable ? serve(service, box) : EXIT_UNUSABLE;
  rl_service_close(service);
  if (profiler) profiler->ops->close(profiler);
  if (device) device->ops->close(device);
  rl_sensors_close(sensors);
  return code;
}

static int usage(FILE *to, int code) {
  fprintf(to,
          "usage: %s --list | --device ID [--role clean|profiled|any]\n"
          "Measures on one device as rooflined asks for on standard input; answers in frames on standard output.\n",
          program_invocation_short_name);
  return code;
}

int main(int argc, char **argv) {
  static const struct option options[] = {{"list", no_argument, NULL, 'l'},       {"device", required_argument, NULL, 'd'},
                                          {"role", required_argument, NULL, 'r'}, {"help", no_argument, NULL, 'h'},
                                          {"version", no_argument, NULL, 'v'},    {0}};
  if (take_standard_output()) return EXIT_PROTOCOL;
  signal(SIGPIPE, SIG_IGN);
  signal(SIGINT, SIG_IGN); /* from a terminal it is meant for the daemon, which closes our pipe */
  rl_log_open(program_invocation_short_name, RL_LOG_INFO);
  const char *device = NULL, *role = "any";
  bool list = false;
  for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    switch (option) {
      case 'l': list = true; break;
      case 'd': device = optarg; break;
      case 'r': role = optarg; break;
      case 'h': return usage(stderr, EXIT_SUCCESS);
      case 'v': return dprintf(frames, "%s %s\n", program_invocation_short_name, RL_COMMIT) < 0;
      default: return usage(stderr, EXIT_USAGE);
    }
  }
  bool known_role = strcmp(role, "clean") == 0 || strcmp(role, "profiled") == 0 || strcmp(role, "any") == 0;
  if (optind != argc || !known_role || list == (device != NULL)) return usage(stderr, EXIT_USAGE);
  if (list) return list_devices(role);
  int index = device_index(device);
  if (index < 0) {
    rl_log(RL_LOG_ERROR, "\"%s\" is no device of this program", device);
    return EXIT_USAGE;
  }

  /* Static: the reader may still wait for its pipe when main returns. */
  static inbox box = {.lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER};
  pthread_t reader;
  box.reader = rl_frame_reader_new(STDIN_FILENO);
  if (!box.reader || pthread_create(&reader, NULL, read_frames, &box)) return EXIT_PROTOCOL;
  return work(&box, index, role);
}
