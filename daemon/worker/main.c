/* A worker program reads frames from standard input and writes frames to standard output until the daemon closes the pipe. The
 * linked libraries determine its device, engines, profiler and sensors. The role determines which passes the worker executes:
 * "unprofiled" the timing pass, "profiled" the other passes, and "any" all passes (CPU).
 *
 * There are three threads. The reader thread reads frames: CANCEL sets a flag that the running pass polls, SOURCE stores posted
 * code in the source cache, REQUEST and RELEASE become commands for the main thread, and end of file ends the process at once.
 * The main thread owns the device, executes one command at a time and writes the frames of its results. The heartbeat thread
 * (heartbeat.h) writes HEARTBEAT frames meanwhile. rl_heartbeat_lock_frames serializes the frames of the main and the heartbeat
 * thread. */
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
#include "nvrtc/nvrtc.h"
#include "source/executed.h"
#include "source/source_cache.h"
#include "worker/heartbeat.h"
#include "worker/service.h"
#include "wire/wire.h"

enum { EXIT_USAGE = 2, EXIT_UNUSABLE = 3, EXIT_DEVICE_LOST = 4, EXIT_PROTOCOL = 5 };

typedef enum command { COMMAND_NONE, COMMAND_REQUEST, COMMAND_RELEASE_PROFILER, COMMAND_OPEN_DEVICE } command;

typedef struct inbox { /* passes commands from the reader thread to the main thread; holds at most one */
  pthread_mutex_t lock;
  pthread_cond_t command_posted;
  command pending;
  bool busy;          /* the main thread executes a command */
  rl_request request; /* the request of a COMMAND_REQUEST */
  atomic_bool cancelled;
  rl_frame_reader *reader;
} inbox;

static int frames_fd = -1; /* pipe to the daemon */

/* Redirects standard output to the log, so that output of a library or of posted code does not corrupt the frames. */
static int redirect_standard_output(void) {
  frames_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  return frames_fd >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0 ? 0 : -1;
}

static _Noreturn void exit_without_cleanup(int code) { _exit(code); }

/* ---- the reader -------------------------------------------------------------------------------------------------------- */

/* Passes a command to the main thread. request: the request of a COMMAND_REQUEST; NULL for other commands. */
static void post_command(inbox *box, command next, const rl_request *request) {
  pthread_mutex_lock(&box->lock);
  if (box->pending != COMMAND_NONE || box->busy) {
    rl_log(RL_LOG_ERROR, "a REQUEST, RELEASE or OPEN frame arrived before the previous command ended");
    exit_without_cleanup(EXIT_PROTOCOL);
  }
  if (request) box->request = *request;
  box->pending = next;
  atomic_store(&box->cancelled, false);
  pthread_cond_signal(&box->command_posted);
  pthread_mutex_unlock(&box->lock);
}

static void accept_request(inbox *box, const rl_frame *frame) {
  rl_error err = {0};
  rl_request request = {0};
  if (rl_fields_parse(rl_request_fields, (const char *)frame->payload, frame->length, &request, sizeof request, &err) < 0) {
    rl_log(RL_LOG_ERROR, "invalid request: %s: %s", err.json_pointer, err.message);
    exit_without_cleanup(EXIT_PROTOCOL);
  }
  post_command(box, COMMAND_REQUEST, &request);
}

static void store_source(const rl_frame *frame) {
  rl_error err = {0};
  if (rl_source_cache_put((const char *)frame->payload, frame->length, &err) >= 0) return;
  rl_log(RL_LOG_ERROR, "can't store posted code: %s", err.message);
  exit_without_cleanup(EXIT_PROTOCOL);
}

static void *read_frames(void *context) {
  inbox *box = context;
  for (;;) {
    rl_frame frame;
    rl_error err = {0};
    if (rl_frame_read(box->reader, -1, &frame, &err) < 0) {
      if (err.code == RL_WIRE_CLOSED) exit_without_cleanup(EXIT_SUCCESS);
      rl_log(RL_LOG_ERROR, "%s", err.message);
      exit_without_cleanup(EXIT_PROTOCOL);
    }
    if (frame.type == RL_FRAME_CANCEL) atomic_store(&box->cancelled, true);
    else if (frame.type == RL_FRAME_SOURCE) store_source(&frame);
    else if (frame.type == RL_FRAME_REQUEST) accept_request(box, &frame);
    else if (frame.type == RL_FRAME_RELEASE) post_command(box, COMMAND_RELEASE_PROFILER, NULL);
    else if (frame.type == RL_FRAME_OPEN) post_command(box, COMMAND_OPEN_DEVICE, NULL);
    else {
      rl_log(RL_LOG_ERROR, "a worker does not accept frames of type %d", (int)frame.type);
      exit_without_cleanup(EXIT_PROTOCOL);
    }
  }
}

static command wait_for_command(inbox *box, rl_request *request) {
  pthread_mutex_lock(&box->lock);
  while (box->pending == COMMAND_NONE) pthread_cond_wait(&box->command_posted, &box->lock);
  command next = box->pending;
  *request = box->request;
  box->pending = COMMAND_NONE;
  box->busy = true;
  pthread_mutex_unlock(&box->lock);
  return next;
}

/* Allows the next command. Call it before the last frame of a result, because the next request may follow at once. */
static void set_idle(inbox *box) {
  pthread_mutex_lock(&box->lock);
  box->busy = false;
  pthread_mutex_unlock(&box->lock);
}

/* ---- frames to the daemon ----------------------------------------------------------------------------------------------- */

/* Exits when rc is the result of a failed write, because the daemon then no longer reads the pipe. */
static void check_written(int rc, const rl_error *err) {
  if (rc >= 0) return;
  rl_log(RL_LOG_ERROR, "can't write to the daemon: %s", err->message);
  exit_without_cleanup(EXIT_PROTOCOL);
}

static void send_message(rl_frame_type type, const rl_field *table, const void *message) {
  rl_error err = {0};
  rl_heartbeat_lock_frames();
  check_written(rl_frame_write_json(frames_fd, type, table, message, &err), &err);
  rl_heartbeat_unlock_frames();
}

static void send_payload(rl_frame_type type, const void *payload, size_t length) {
  rl_error err = {0};
  rl_heartbeat_lock_frames();
  check_written(rl_frame_write(frames_fd, type, payload, length, &err), &err);
  rl_heartbeat_unlock_frames();
}

static void on_heartbeat_failed(const rl_error *err) { check_written(-1, err); }

static void on_instance_opened(void *context, const rl_run_metadata *metadata) {
  (void)context;
  rl_log(RL_LOG_DEBUG, "the instance is open");
  send_message(RL_FRAME_METADATA, rl_run_metadata_fields, metadata);
}

static void on_progress(void *context, const rl_progress *progress) {
  (void)context;
  send_message(RL_FRAME_PROGRESS, rl_progress_fields, progress);
}

static void on_log(const char *text) {
  if (text[0] != '\0') send_payload(RL_FRAME_LOG, text, strlen(text));
}

/* Returns whether the daemon has cancelled the request. The running pass polls it. */
static bool poll_cancelled(void *context) {
  rl_heartbeat_check_point();
  return atomic_load_explicit(&((inbox *)context)->cancelled, memory_order_relaxed);
}

static void on_stage(void *context, const char *stage) {
  (void)context;
  rl_log(RL_LOG_DEBUG, "stage %s", stage);
  rl_heartbeat_enter_stage(stage);
}

static rl_failure make_failure(const rl_error *why) {
  rl_failure failure = {.code = why->code, .has_executed_source = rl_source_has_executed()};
  snprintf(failure.domain, sizeof failure.domain, "%s", rl_domain_name(why->domain));
  const int message_bytes = (int)(sizeof failure.message - strlen(why->json_pointer) - sizeof " (at )");
  if (why->json_pointer[0] == '\0') snprintf(failure.message, sizeof failure.message, "%s", why->message);
  else snprintf(failure.message, sizeof failure.message, "%.*s (at %s)", message_bytes, why->message, why->json_pointer);
  return failure;
}

static void send_outcome(inbox *box, rl_outcome outcome, rl_records *records, const rl_failure *failure) {
  rl_error err = {0};
  if (outcome == RL_OUTCOME_DONE) {
    records->has_metadata = false; /* already sent in a METADATA frame */
    rl_heartbeat_lock_frames();
    check_written(rl_records_send(frames_fd, records, &err), &err);
    rl_heartbeat_unlock_frames();
  }
  rl_heartbeat_lock_frames();
  rl_heartbeat_end_request();
  rl_heartbeat_unlock_frames();
  set_idle(box);
  switch (outcome) {
    case RL_OUTCOME_DONE: send_payload(RL_FRAME_DONE, NULL, 0); break;
    case RL_OUTCOME_CANCELLED: send_payload(RL_FRAME_CANCELLED, NULL, 0); break;
    case RL_OUTCOME_UNAVAILABLE: send_message(RL_FRAME_UNAVAILABLE, rl_failure_fields, failure); break;
    case RL_OUTCOME_FAILED: send_message(RL_FRAME_FAILED, rl_failure_fields, failure); break;
  }
}

static void release_profiler(rl_service *service, inbox *box) {
  rl_service_release_profiler(service);
  set_idle(box);
  send_payload(RL_FRAME_RELEASED, NULL, 0);
}

/* Returns false when the device no longer works. */
static bool serve_request(rl_service *service, inbox *box, const rl_request *request) {
  rl_records records = {0};
  rl_error err = {0};
  rl_heartbeat_begin_request();
  rl_outcome outcome = rl_service_serve(service, request, &records, &err);
  if (outcome == RL_OUTCOME_FAILED)
    rl_log(RL_LOG_ERROR, "%s, %s: %s", request->workload, rl_pass_names[request->pass], err.message);
  const rl_failure failure = make_failure(&err);
  rl_log(RL_LOG_DEBUG, "the request has ended");
  send_outcome(box, outcome, &records, &failure);
  rl_log(RL_LOG_DEBUG, "the results are sent");
  rl_records_clear(&records);
  return outcome != RL_OUTCOME_FAILED || err.domain == RL_INPUT || rl_service_device_works(service);
}

static _Noreturn void exit_after_unexpected_open(void) {
  rl_log(RL_LOG_ERROR, "an OPEN frame arrived, but the device is already open");
  exit_without_cleanup(EXIT_PROTOCOL);
}

static int serve(rl_service *service, inbox *box) {
  for (;;) {
    rl_request request;
    const command next = wait_for_command(box, &request);
    if (next == COMMAND_OPEN_DEVICE) exit_after_unexpected_open();
    if (next == COMMAND_RELEASE_PROFILER) release_profiler(service, box);
    else if (!serve_request(service, box, &request)) {
      rl_log(RL_LOG_ERROR, "the device no longer works; this worker exits");
      return EXIT_DEVICE_LOST;
    }
  }
}

/* ---- hello --------------------------------------------------------------------------------------------------------------- */

static void format_device_id(int index, char id[16]) {
  if (rl_engines[0]->description->device == RL_DEVICE_CPU) snprintf(id, 16, "cpu");
  else snprintf(id, 16, "gpu%d", index);
}

/* Returns the device index of "cpu" or "gpu3"; −1: not a device of this program. */
static int parse_device_id(const char *id) {
  char expected[16];
  int index = 0;
  if (strncmp(id, "gpu", 3) == 0) index = atoi(id + 3);
  format_device_id(index, expected);
  return strcmp(id, expected) == 0 ? index : -1;
}

static rl_hello make_hello(int index, const char *role) {
  rl_hello hello = {.protocol = RL_WIRE_VERSION, .commit = RL_COMMIT};
  snprintf(hello.program, sizeof hello.program, "%s", program_invocation_short_name);
  snprintf(hello.role, sizeof hello.role, "%s", role);
  format_device_id(index, hello.device);
  return hello;
}

static void set_unusable(rl_hello *hello, const rl_error *err) {
  hello->usable = false;
  snprintf(hello->reason, sizeof hello->reason, "%s", err->message);
}

/* Sets hello->usable. Sets hello->properties when the device is usable, otherwise hello->reason. */
static void fill_hello(rl_hello *hello, int index) {
  rl_error err = {0};
  RL_CLEANUP(rl_free_text) char *properties = NULL;
  if (rl_device_count(&err) <= index) {
    if (!err.message[0]) rl_fail(&err, RL_INPUT, 0, "there is no device %s", hello->device);
  } else {
    properties = rl_device_properties(index, &err);
  }
  if (properties && strlen(properties) < sizeof hello->properties) {
    strcpy(hello->properties, properties);
    hello->usable = true;
  } else {
    if (properties)
      rl_fail(&err, RL_ERRNO, EOVERFLOW, "the device's properties need %zu bytes, more than the limit of %zu", strlen(properties),
              sizeof hello->properties - 1);
    set_unusable(hello, &err);
  }
}

static int list_devices(const char *role) {
  int count = rl_device_count(NULL);
  for (int i = 0; i < (count > 0 ? count : 1); i++) {
    rl_hello hello = make_hello(i, role);
    fill_hello(&hello, i);
    if (rl_engines[0]->description->device ==
        RL_DEVICE_CPU) /* the unsupported engines of a GPU are known only after it is opened */
      rl_engines_list_unsupported(hello.unsupported_engines, sizeof hello.unsupported_engines);
    send_message(RL_FRAME_HELLO, rl_hello_fields, &hello);
  }
  return EXIT_SUCCESS;
}

/* ---- main ---------------------------------------------------------------------------------------------------------------- */

/* Waits for the first frame, which must be OPEN. */
static void wait_for_open(inbox *box) {
  rl_request request;
  if (wait_for_command(box, &request) != COMMAND_OPEN_DEVICE) {
    rl_log(RL_LOG_ERROR, "the first frame is not OPEN");
    exit_without_cleanup(EXIT_PROTOCOL);
  }
  set_idle(box);
}

/* Opens profiler, sensors and device, sends HELLO, and serves requests. Opens the profiler first, because CUPTI must be loaded
 * before the first CUDA call. waits: initializes the libraries at once, but opens the device only after an OPEN frame. */
static int open_and_serve(inbox *box, int index, const char *role, bool waits) {
  rl_error err = {0}, profiler_err = {0};
  rl_service *service = NULL;
  rl_profiler *profiler = strcmp(role, "unprofiled") == 0 ? NULL : rl_profiler_open(index, &profiler_err);
  const char *no_profiler_reason = profiler_err.message[0] ? profiler_err.message : "no profiler in the unprofiled role";
  rl_hello hello = make_hello(index, role);
  fill_hello(&hello, index);
  rl_sensors *sensors = rl_sensors_open(hello.properties);
  if (waits) rl_nvrtc_prepare(NULL); /* a worker waits only for posted code */
  rl_log(RL_LOG_DEBUG, "the libraries are initialized");
  if (waits) wait_for_open(box);
  const double used_bytes_before_open = sensors ? rl_sensors_read_used_bytes(sensors) : NAN;
  rl_device *device = hello.usable ? rl_device_open(index, &err) : NULL;
  if (profiler) profiler->device = device;
  if (device) device->on_compiler_log = on_log;
  if (device) {
    fill_hello(&hello, index); /* some properties are known only after opening */
    rl_engines_list_unsupported(hello.unsupported_engines, sizeof hello.unsupported_engines);
  }
  rl_service_options options = {.device = device,
                                .profiler = profiler,
                                .sensors = sensors,
                                .role = role,
                                .no_profiler_reason = no_profiler_reason,
                                .used_bytes_before_open = used_bytes_before_open,
                                .cancelled = poll_cancelled,
                                .instance_opened = on_instance_opened,
                                .progress = on_progress,
                                .stage = on_stage,
                                .context = box};
  if (hello.usable && (!device || !sensors || rl_service_open(&options, &service, &err) < 0)) {
    if (!err.message[0]) rl_fail(&err, RL_ERRNO, ENOMEM, "out of memory for the worker");
    set_unusable(&hello, &err);
  }
  rl_log(RL_LOG_DEBUG, "the device is open");
  if (service && profiler && profiler->ops->prepare_counters) profiler->ops->prepare_counters(profiler);
  send_message(RL_FRAME_HELLO, rl_hello_fields, &hello);
  int code = hello.usable ? serve(service, box) : EXIT_UNUSABLE;
  rl_service_close(service);
  if (profiler) profiler->ops->close(profiler);
  if (device) device->ops->close(device);
  rl_sensors_close(sensors);
  return code;
}

static int print_usage(FILE *file, int code) {
  fprintf(
      file,
      "usage: %s --list | --device ID [--role unprofiled|profiled|any] [--wait]\n"
      "Executes measurements on one device for rooflined: reads frames from standard input, writes frames to standard output.\n",
      program_invocation_short_name);
  return code;
}

int main(int argc, char **argv) {
  static const struct option options[] = {{"list", no_argument, NULL, 'l'},
                                          {"device", required_argument, NULL, 'd'},
                                          {"role", required_argument, NULL, 'r'},
                                          {"wait", no_argument, NULL, 'w'},
                                          {"help", no_argument, NULL, 'h'},
                                          {"version", no_argument, NULL, 'v'},
                                          {0}};
  if (redirect_standard_output() < 0) return EXIT_PROTOCOL;
  signal(SIGPIPE, SIG_IGN);
  signal(SIGINT, SIG_IGN); /* Ctrl-C ends the daemon, which then closes the worker's standard input */
  const char *log_level = getenv("ROOFLINED_LOG_LEVEL");
  rl_log_open(program_invocation_short_name, rl_log_level_by_name(log_level != NULL ? log_level : ""));
  const char *device = NULL, *role = "any";
  bool list = false, waits = false;
  for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    switch (option) {
      case 'l': list = true; break;
      case 'd': device = optarg; break;
      case 'r': role = optarg; break;
      case 'w': waits = true; break;
      case 'h': return print_usage(stderr, EXIT_SUCCESS);
      case 'v': return dprintf(frames_fd, "%s %s\n", program_invocation_short_name, RL_COMMIT) < 0;
      default: return print_usage(stderr, EXIT_USAGE);
    }
  }
  bool known_role = strcmp(role, "unprofiled") == 0 || strcmp(role, "profiled") == 0 || strcmp(role, "any") == 0;
  if (optind != argc || !known_role || list == (device != NULL)) return print_usage(stderr, EXIT_USAGE);
  if (list) return list_devices(role);
  int index = parse_device_id(device);
  if (index < 0) {
    rl_log(RL_LOG_ERROR, "this program has no device \"%s\"", device);
    return EXIT_USAGE;
  }

  /* Static, because the reader thread may still use the inbox when main returns. */
  static inbox box = {.lock = PTHREAD_MUTEX_INITIALIZER, .command_posted = PTHREAD_COND_INITIALIZER};
  pthread_t reader;
  box.reader = rl_frame_reader_new(STDIN_FILENO);
  rl_error err;
  if (!box.reader || pthread_create(&reader, NULL, read_frames, &box)) return EXIT_PROTOCOL;
  if (rl_heartbeat_start(frames_fd, strcmp(device, "cpu") == 0, on_heartbeat_failed, &err) < 0) {
    rl_log(RL_LOG_ERROR, "%s", err.message);
    return EXIT_PROTOCOL;
  }
  return open_and_serve(&box, index, role, waits);
}
