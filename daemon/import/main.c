/* The program rooflined-import executes the passes of import jobs: it reads the uploaded trace and sends its records. It speaks
 * the protocol of a worker (wire/wire.h) on standard input and output, and reads the trace from an inherited descriptor. It
 * enters the sandbox before it reads the trace. It has one thread, which polls for CANCEL and sends HEARTBEAT and PROGRESS each
 * time the parser has read a part of the trace.
 *
 *   rooflined-import --list                        sends HELLO, which contains whether the sandbox works
 *   rooflined-import --device import --role any    serves requests; the trace is descriptor 3 */
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/commit.h"
#include "base/log.h"
#include "base/sandbox.h"
#include "import/import.h"
#include "wire/wire.h"

enum { EXIT_USAGE = 2, EXIT_UNUSABLE = 3, EXIT_PROTOCOL = 5, TRACE_DESCRIPTOR = 3, MAX_CPU_TIME_S = 300 };
static const int64_t POLL_NS = 100000000, PROGRESS_NS = 250000000, HEARTBEAT_NS = 5000000000;

typedef struct session {
  int frames_fd; /* pipe to the daemon */
  rl_frame_reader *reader;
  bool is_cancelled, has_exceeded_cpu_time;
  int64_t polled_ns, progress_ns, heartbeat_ns; /* rl_monotonic_ns of the last poll, PROGRESS and HEARTBEAT */
} session;

static _Noreturn void exit_with_error(int code, const rl_error *err) {
  rl_log(RL_LOG_ERROR, "%s", err->message);
  _exit(code);
}

static void check_written(int rc, const rl_error *err) {
  if (rc < 0) exit_with_error(EXIT_PROTOCOL, err);
}

static void send_message(const session *self, rl_frame_type type, const rl_field *fields, const void *message) {
  rl_error err;
  check_written(rl_frame_write_json(self->frames_fd, type, fields, message, &err), &err);
}

static void send_payload(const session *self, rl_frame_type type, const void *payload, size_t length) {
  rl_error err;
  check_written(rl_frame_write(self->frames_fd, type, payload, length, &err), &err);
}

/* --- frames while a trace is read -------------------------------------------------------------------------------------- */

/* Waits at most timeout_ms (-1: no limit) for a frame. Returns true if one has arrived. Exits when the daemon has closed the
 * pipe. */
static bool receive(session *self, int timeout_ms, rl_frame *frame) {
  rl_error err;
  if (rl_frame_read(self->reader, timeout_ms, frame, &err) >= 0) return true;
  if (err.code == RL_WIRE_TIMEOUT) return false;
  if (err.code == RL_WIRE_CLOSED) _exit(EXIT_SUCCESS);
  exit_with_error(EXIT_PROTOCOL, &err);
}

static void send_progress(const session *self, double ratio) {
  rl_progress progress = {.phase = "import",
                          .epoch = -1,
                          .epochs = -1,
                          .step = (int64_t)(ratio * 1000),
                          .steps = 1000,
                          .train_loss = NAN,
                          .images_per_s = NAN,
                          .eta_s = NAN,
                          .test_accuracy_ratio = NAN};
  snprintf(progress.pass, sizeof progress.pass, "%s", rl_pass_names[RL_PASS_ACTIVITY]);
  send_message(self, RL_FRAME_PROGRESS, rl_progress_fields, &progress);
}

static void send_heartbeat(const session *self) {
  const rl_heartbeat heartbeat = {.stage = "import", .idle_ms = 0, .limit_ms = 30000};
  send_message(self, RL_FRAME_HEARTBEAT, rl_heartbeat_fields, &heartbeat);
}

/* Returns whether interval_ns have passed since *last_ns; if they have, sets *last_ns to now_ns. */
static bool is_due(int64_t now_ns, int64_t interval_ns, int64_t *last_ns) {
  if (now_ns - *last_ns < interval_ns) return false;
  *last_ns = now_ns;
  return true;
}

static bool has_spent_cpu_time(void) {
  struct timespec spent;
  return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent) == 0 && spent.tv_sec >= MAX_CPU_TIME_S;
}

/* Callback of the parser: receives CANCEL, and sends PROGRESS and HEARTBEAT when they are due. Returns whether the import must
 * end. */
static bool poll_cancelled(void *context, double progress) {
  session *self = context;
  rl_frame frame;
  const int64_t now_ns = rl_monotonic_ns();
  if (!is_due(now_ns, POLL_NS, &self->polled_ns)) return self->is_cancelled || self->has_exceeded_cpu_time;
  if (is_due(now_ns, PROGRESS_NS, &self->progress_ns)) send_progress(self, progress);
  if (is_due(now_ns, HEARTBEAT_NS, &self->heartbeat_ns)) send_heartbeat(self);
  if (receive(self, 0, &frame)) self->is_cancelled |= frame.type == RL_FRAME_CANCEL;
  self->has_exceeded_cpu_time = has_spent_cpu_time();
  return self->is_cancelled || self->has_exceeded_cpu_time;
}

/* --- requests ---------------------------------------------------------------------------------------------------------- */

static void send_failure(const session *self, rl_frame_type type, const rl_error *cause) {
  rl_failure failure = {.code = cause->code};
  snprintf(failure.domain, sizeof failure.domain, "%s", rl_domain_name(cause->domain));
  snprintf(failure.message, sizeof failure.message, "%s", cause->message);
  send_message(self, type, rl_failure_fields, &failure);
}

static void send_unavailable(const session *self, const char *reason) {
  rl_error cause;
  rl_fail(&cause, RL_INPUT, 0, "%s", reason);
  send_failure(self, RL_FRAME_UNAVAILABLE, &cause);
}

static void send_results(const session *self, const rl_records *records, const char *notes) {
  rl_error err;
  check_written(rl_records_send(self->frames_fd, records, &err), &err);
  send_payload(self, RL_FRAME_LOG, notes, strlen(notes));
  send_payload(self, RL_FRAME_DONE, NULL, 0);
}

static int import(session *self, const rl_request *request, rl_records *records, char **notes, rl_error *err) {
  rl_imported_trace_params params = {0};
  const rl_import_observer observer = {.cancelled = poll_cancelled, .context = self};
  if (rl_fields_parse(rl_imported_trace_fields, request->params, strlen(request->params), &params, sizeof params, err) < 0)
    return -1;
  return rl_import_read(TRACE_DESCRIPTOR, (rl_trace_format)params.format, &observer, records, notes, err);
}

static void serve_import(session *self, const rl_request *request) {
  rl_records records = {0};
  RL_CLEANUP(rl_free_text) char *notes = NULL;
  rl_error err = {0};
  self->is_cancelled = self->has_exceeded_cpu_time = false;
  self->polled_ns = self->progress_ns = self->heartbeat_ns = rl_monotonic_ns();
  int rc = import(self, request, &records, &notes, &err);
  if (rc < 0 && self->has_exceeded_cpu_time)
    rl_fail(&err, RL_INPUT, 0, "the import takes more than %d s of processor time", MAX_CPU_TIME_S);
  if (rc >= 0) send_results(self, &records, notes);
  else if (self->is_cancelled) send_payload(self, RL_FRAME_CANCELLED, NULL, 0);
  else send_failure(self, RL_FRAME_FAILED, &err);
  rl_records_clear(&records);
}

static void serve_request(session *self, const rl_frame *frame) {
  rl_request request = {0};
  rl_error err;
  if (rl_fields_parse(rl_request_fields, (const char *)frame->payload, frame->length, &request, sizeof request, &err) < 0)
    exit_with_error(EXIT_PROTOCOL, &err);
  if (request.pass == RL_PASS_ACTIVITY) serve_import(self, &request);
  else
    send_unavailable(self, request.pass == RL_PASS_TIMING ? "an imported trace has no untraced times"
                                                          : "an imported trace has no hardware counters");
}

static void serve(session *self) {
  for (;;) {
    rl_frame frame;
    (void)receive(self, -1, &frame);
    if (frame.type == RL_FRAME_REQUEST) serve_request(self, &frame);
    else if (frame.type == RL_FRAME_RELEASE) send_payload(self, RL_FRAME_RELEASED, NULL, 0);
    else if (frame.type != RL_FRAME_CANCEL) _exit(EXIT_PROTOCOL);
  }
}

/* --- main -------------------------------------------------------------------------------------------------------------- */

static int enter_sandbox(rl_error *err) {
  static const rl_sandbox_limits limits = {
      .memory_bytes = UINT64_C(1) << 30,
      .file_bytes = UINT64_MAX /* no limit, because the process can only write its log and its pipe */,
      .cpu_time_s = 2 * MAX_CPU_TIME_S /* a second limit, which ends an import that never polls */};
  return rl_sandbox_enter(&limits, err);
}

/* Enters the sandbox and sends HELLO. Returns whether the sandbox works; without it no trace is imported. */
static bool send_hello(const session *self) {
  rl_error err;
  rl_hello hello = {.protocol = RL_WIRE_VERSION,
                    .program = "rooflined-import",
                    .commit = RL_COMMIT,
                    .device = RL_IMPORT_DEVICE,
                    .role = "any",
                    .properties = "{}"};
  hello.usable = enter_sandbox(&err) >= 0;
  if (!hello.usable) snprintf(hello.reason, sizeof hello.reason, "%.255s", err.message);
  send_message(self, RL_FRAME_HELLO, rl_hello_fields, &hello);
  return hello.usable;
}

int main(int argc, char **argv) {
  session self = {.frames_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, TRACE_DESCRIPTOR + 1)};
  bool must_list = argc == 2 && strcmp(argv[1], "--list") == 0;
  bool must_serve = argc == 5 && strcmp(argv[1], "--device") == 0 && strcmp(argv[2], RL_IMPORT_DEVICE) == 0;
  if (self.frames_fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return EXIT_PROTOCOL;
  if (!must_list && !must_serve) {
    fprintf(stderr, "usage: rooflined-import --list | --device import --role any\nImports traces for rooflined.\n");
    return EXIT_USAGE;
  }
  signal(SIGPIPE, SIG_IGN);
  signal(SIGINT, SIG_IGN); /* Ctrl-C ends the daemon, which then closes the standard input of this process */
  rl_log_open("rooflined-import", RL_LOG_INFO);
  self.reader = rl_frame_reader_new(STDIN_FILENO);
  if (self.reader == NULL) return EXIT_PROTOCOL;
  if (!send_hello(&self)) return EXIT_UNUSABLE;
  if (must_serve) serve(&self);
  _exit(EXIT_SUCCESS); /* not exit(), because exit handlers make system calls that the sandbox denies */
}
