/* A worker for the tests of the supervisor. The environment variable FAKE_WORKER selects what the worker does; without it, the
 * worker follows the protocol. Each process that serves a device appends its process id as a line to the file FAKE_STARTS when it
 * starts, and to the file FAKE_RELEASES when it receives a RELEASE frame. A process that was started with --wait appends its id
 * to the file FAKE_OPENINGS when it begins to open the device, and again when the device is open. A process appends its id to the
 * file FAKE_OVERLAPS for each request with opening_overlapped. In mode rows-gated, it waits for the file FAKE_GATE. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "wire/wire.h"

enum { OUT = STDOUT_FILENO };
static rl_error err;

static const char *read_setting(const char *name) { return getenv(name) != NULL ? getenv(name) : ""; }
static bool mode_is(const char *mode) { return strcmp(read_setting("FAKE_WORKER"), mode) == 0; }

static void send_hello(const char *device, const char *role) {
  rl_hello hello = {.protocol = RL_WIRE_VERSION,
                    .program = "fake",
                    .commit = "none",
                    .usable = !mode_is("unusable"),
                    .properties = "{\"name\":\"fake\"}"};
  snprintf(hello.device, sizeof hello.device, "%s", mode_is("other-device") ? "gpu9" : device);
  snprintf(hello.role, sizeof hello.role, "%s", role);
  if (mode_is("unusable")) strcpy(hello.reason, "the device fell off the bus");
  rl_frame_write_json(OUT, RL_FRAME_HELLO, rl_hello_fields, &hello, &err);
}

static int list_devices(void) {
  if (mode_is("list-crash")) {
    fprintf(stderr, "starting\nlibfake.so.9: cannot open shared object file\n");
    return 127;
  }
  if (mode_is("list-garbage")) return puts("cpu") < 0;
  send_hello("cpu", "any");
  return 0;
}

static void send_results(void) {
  rl_records records = {.has_metadata = true};
  rl_epoch epoch = {.device_ms = 1, .host_ms = 1, .images = 64, .train_loss = NAN, .unavailable = "{\"train_loss\":\"fake\"}"};
  strcpy(records.metadata.engine, "fake");
  snprintf(records.metadata.commit, sizeof records.metadata.commit, "mnist %s threads %s", read_setting("ROOFLINED_MNIST_DIR"),
           read_setting("ROOFLINED_THREADS"));
  rl_records_add(&records, RL_RECORD_EPOCH, &epoch, 1, &err);
  if (mode_is("same-epoch-twice")) rl_records_add(&records, RL_RECORD_EPOCH, &epoch, 1, &err);
  rl_records_send(OUT, &records, &err);
  rl_frame_write(OUT, RL_FRAME_DONE, NULL, 0, &err);
  rl_records_clear(&records);
}

static void wait_for_gate(void) {
  while (access(read_setting("FAKE_GATE"), F_OK) != 0) nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

/* Sends FAKE_ROWS activity rows in frames of ROWS_IN_FRAME rows. Kills this process before frame `fatal_frame` (counted from 0),
 * and calls wait_for_gate before frame `gated_frame`; -1: never. */
static void send_rows(int64_t fatal_frame, int64_t gated_frame) {
  enum { ROWS_IN_FRAME = 5000 };
  static rl_activity_row rows[ROWS_IN_FRAME];
  rl_run_metadata metadata = {.engine = "fake"};
  int64_t total = strtoll(read_setting("FAKE_ROWS"), NULL, 10);
  rl_frame_write_json(OUT, RL_FRAME_METADATA, rl_run_metadata_fields, &metadata, &err);
  rl_frame_write(OUT, RL_FRAME_NAME, "span", 4, &err);
  for (int64_t sent = 0; sent < total; sent += ROWS_IN_FRAME) {
    if (sent / ROWS_IN_FRAME == fatal_frame) raise(SIGKILL);
    if (sent / ROWS_IN_FRAME == gated_frame) wait_for_gate();
    int64_t count = total - sent < ROWS_IN_FRAME ? total - sent : ROWS_IN_FRAME;
    for (int64_t i = 0; i < count; i++)
      rows[i] = (rl_activity_row){.kind = RL_ACTIVITY_CPU_SPAN, .start_ns = 10 * (sent + i), .end_ns = 10 * (sent + i) + 5};
    if (rl_frame_write(OUT, RL_FRAME_ROWS, rows, (size_t)count * sizeof *rows, &err) < 0) exit(0);
  }
  rl_frame_write(OUT, RL_FRAME_DONE, NULL, 0, &err);
}

/* Returns the number of lines of FAKE_STARTS, which is the number of processes that have started so far. */
static int count_starts(void) {
  FILE *file = fopen(read_setting("FAKE_STARTS"), "re");
  int count = 0;
  for (int c; file != NULL && (c = getc(file)) != EOF;) count += c == '\n';
  if (file != NULL) fclose(file);
  return count;
}

static bool is_first_start(void) { return count_starts() == 1; }

static void wait_for_cancel(rl_frame_reader *reader) {
  rl_frame frame;
  if (rl_frame_read(reader, -1, &frame, &err) < 0) exit(0);
  if (frame.type == RL_FRAME_CANCEL) rl_frame_write(OUT, RL_FRAME_CANCELLED, NULL, 0, &err);
}

static void serve_request(rl_frame_reader *reader, bool is_profiled) {
  rl_failure failure = {.domain = "cuda", .code = 700, .message = "an illegal memory access"};
  rl_run_metadata metadata = {.engine = "fake"};
  rl_progress progress = {.pass = "timing", .phase = "epoch", .train_loss = NAN};
  rl_activity_row row = {.name = 3};
  char log_text[9000];
  memset(log_text, 'a', sizeof log_text);
  if (mode_is("crash") || (mode_is("crash-once") && is_first_start())) raise(SIGKILL);
  if (mode_is("exit")) exit(3);
  if (mode_is("prints-to-stdout")) printf("hello from a kernel\n"), fflush(stdout);
  if (mode_is("done-first")) rl_frame_write(OUT, RL_FRAME_DONE, NULL, 0, &err);
  if (mode_is("cancelled-unasked")) rl_frame_write(OUT, RL_FRAME_CANCELLED, NULL, 0, &err);
  if (mode_is("hello-again")) send_hello("cpu", "any");
  if (mode_is("hangs")) {
    rl_heartbeat heartbeat = {.stage = "open", .idle_ms = 901000, .limit_ms = 900000};
    rl_frame_write_json(OUT, RL_FRAME_HEARTBEAT, rl_heartbeat_fields, &heartbeat, &err);
    for (;;) pause();
  }
  if (mode_is("half-frame")) exit(write(OUT, "RLFW\3", 5) != 5);
  if (mode_is("bad-row")) {
    rl_frame_write_json(OUT, RL_FRAME_METADATA, rl_run_metadata_fields, &metadata, &err);
    rl_frame_write(OUT, RL_FRAME_ROWS, &row, sizeof row, &err);
  }
  if (mode_is("fail")) rl_frame_write_json(OUT, RL_FRAME_FAILED, rl_failure_fields, &failure, &err);
  if (mode_is("unavailable")) rl_frame_write_json(OUT, RL_FRAME_UNAVAILABLE, rl_failure_fields, &failure, &err);
  while (mode_is("flood")) {
    if (rl_frame_write_json(OUT, RL_FRAME_PROGRESS, rl_progress_fields, &progress, &err) < 0) exit(0);
  }
  while (mode_is("endless-log")) {
    if (rl_frame_write(OUT, RL_FRAME_LOG, log_text, sizeof log_text, &err) < 0) exit(0);
  }
  while (mode_is("ignores-cancel")) pause();
  if (mode_is("rows")) send_rows(-1, -1);
  if (mode_is("rows-gated")) send_rows(-1, 2);
  if (mode_is("rows-crash-once")) send_rows(is_first_start() ? 12 : -1, -1);
  if (mode_is("slow") || (mode_is("profiled-is-slow") && is_profiled)) wait_for_cancel(reader);
  if (mode_is("profiled-is-slow") && !is_profiled) send_results();
  if (mode_is("late")) nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
  static const char *const modes_with_results[] = {"",
                                                   "late",
                                                   "crash-once",
                                                   "chatter",
                                                   "same-epoch-twice",
                                                   "keeps-device",
                                                   "second-is-mute",
                                                   "profiled-is-mute",
                                                   "profiled-exits"};
  for (size_t i = 0; i < sizeof modes_with_results / sizeof *modes_with_results; i++)
    if (mode_is(modes_with_results[i])) send_results();
  if (mode_is("chatter")) rl_frame_write(OUT, RL_FRAME_DONE, NULL, 0, &err);
}

static void append_process_id(const char *file_setting) {
  FILE *file = fopen(read_setting(file_setting), "ae");
  if (file == NULL) return;
  fprintf(file, "%d\n", (int)getpid());
  fclose(file);
}

static void answer_release(void) {
  append_process_id("FAKE_RELEASES");
  if (!mode_is("keeps-device")) rl_frame_write(OUT, RL_FRAME_RELEASED, NULL, 0, &err);
}

static void note_overlap(const rl_frame *frame) {
  rl_request request = {0};
  if (rl_fields_parse(rl_request_fields, (const char *)frame->payload, frame->length, &request, sizeof request, &err) < 0)
    exit(66);
  if (request.opening_overlapped) append_process_id("FAKE_OVERLAPS");
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "--list") == 0) return list_devices();
  const bool waits = argc == 6 && strcmp(argv[5], "--wait") == 0;
  if (argc != 5 && !waits) return 64; /* --device ID --role ROLE [--wait] */
  append_process_id("FAKE_STARTS");
  const bool is_profiled = strcmp(argv[4], "profiled") == 0;
  if (mode_is("profiled-exits") && is_profiled) return 3;
  if ((mode_is("second-is-mute") && count_starts() == 2) || (mode_is("profiled-is-mute") && is_profiled)) pause();
  rl_frame_reader *reader = rl_frame_reader_new(STDIN_FILENO);
  rl_frame first;
  if (waits && (rl_frame_read(reader, -1, &first, &err) < 0 || first.type != RL_FRAME_OPEN)) {
    rl_frame_reader_free(reader);
    return 65;
  }
  if (waits) {
    append_process_id("FAKE_OPENINGS");
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    append_process_id("FAKE_OPENINGS");
  }
  send_hello(argv[2], argv[4]);
  for (rl_frame frame; rl_frame_read(reader, -1, &frame, &err) == 0;) {
    if (frame.type == RL_FRAME_REQUEST) {
      note_overlap(&frame);
      serve_request(reader, is_profiled);
    }
    if (frame.type == RL_FRAME_RELEASE) answer_release();
  }
  rl_frame_reader_free(reader);
  return 0;
}
