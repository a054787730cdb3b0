/* A fake worker for api.py. If the program's name ends with -cpu, it serves the CPU, otherwise a GPU. On the CPU the seed of a
 * training job is the number of rows of its trace. The worker sends a trace of up to MAX_PACED_ROWS rows at ROWS_PER_S, the rate
 * of a running program, and a longer trace as fast as the daemon reads it. On a GPU a job runs until it is cancelled, so that the
 * jobs after it stay queued.
 *
 * If $STREAM_WORKER_LOG names a file, the worker appends two lines for each pass: one that begins with "sending" before the last
 * frame, and one that begins with "sent" after it. A line has seed, pass, CLOCK_MONOTONIC in ns, number of epochs or rows, their
 * checksum (as in ../crash/chaos.py) and number of kernels. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "grow_records.h"
#include "wire/wire.h"

enum { OUT = STDOUT_FILENO, MAX_PACED_ROWS = 1000000, ROWS_PER_S = 20000, FRAMES_PER_S = 10 };
enum { CHECKSUM_MODULUS = 1000003 };
static rl_error err;
static const char *device_id;
static int64_t checksum; /* of the current pass */

/* Ends the program after a failure. Usually the daemon has closed its pipe. */
static void exit_on_failure(int rc) {
  if (rc < 0) exit(0);
}

static void send_hello(const char *device, const char *role) {
  rl_hello hello = {.protocol = RL_WIRE_VERSION, .program = "stream_worker", .commit = "none", .usable = true};
  snprintf(hello.device, sizeof hello.device, "%s", device);
  snprintf(hello.role, sizeof hello.role, "%s", role);
  snprintf(hello.properties, sizeof hello.properties, "{\"name\":\"stream_worker\"}");
  exit_on_failure(rl_frame_write_json(OUT, RL_FRAME_HELLO, rl_hello_fields, &hello, &err));
}

static void send_progress(const char *pass, int64_t step, int64_t steps) {
  rl_progress progress = {.epochs = 1, .step = step, .steps = steps, .train_loss = 0.1, .images_per_s = 3e5, .eta_s = 1};
  snprintf(progress.pass, sizeof progress.pass, "%s", pass);
  snprintf(progress.phase, sizeof progress.phase, "epoch");
  exit_on_failure(rl_frame_write_json(OUT, RL_FRAME_PROGRESS, rl_progress_fields, &progress, &err));
}

/* Waits up to timeout_ms for a frame. Returns true if it is CANCEL, after answering it. */
static bool is_cancelled(rl_frame_reader *reader, int timeout_ms) {
  rl_frame frame;
  if (rl_frame_read(reader, timeout_ms, &frame, &err) < 0) {
    if (err.domain != RL_WIRE || err.code != RL_WIRE_TIMEOUT) exit(0);
    return false;
  }
  if (frame.type != RL_FRAME_CANCEL) return false;
  exit_on_failure(rl_frame_write(OUT, RL_FRAME_CANCELLED, NULL, 0, &err));
  return true;
}

static void add_epochs_to_checksum(const rl_records *records) {
  double sum_ms = 0;
  for (size_t i = 0; i < records->epoch_count; i++) sum_ms += (double)(i + 1) * records->epochs[i].device_ms;
  checksum = (int64_t)(sum_ms * 1000);
}

static void add_rows_to_checksum(int64_t first, const rl_activity_row *rows, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    const rl_activity_row *row = &rows[i];
    int64_t sum = row->start_ns + 3 * (row->end_ns - row->start_ns) + 7 * (int64_t)row->bytes + 11 * (int64_t)row->correlation;
    checksum += (first + i + 1) * sum % CHECKSUM_MODULUS;
  }
}

static void log_pass(const char *event, const rl_claim *claim, int64_t seed, const rl_records *records) {
  const char *path = getenv("STREAM_WORKER_LOG");
  if (path == NULL) return;
  const bool has_rows = claim->pass == RL_PASS_ACTIVITY;
  int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  dprintf(file, "%s %lld %s %lld %lld %lld %zu\n", event, (long long)seed, rl_pass_names[claim->pass],
          (long long)rl_monotonic_ns(), (long long)(has_rows ? seed : (int64_t)records->epoch_count), (long long)checksum,
          records->kernel_count);
  close(file);
}

/* Sends the rows of a trace, and adds them to the checksum. Returns true if the daemon cancelled the job. */
static bool send_rows(rl_frame_reader *reader, int64_t total) {
  const bool is_paced = total <= MAX_PACED_ROWS;
  const int64_t max_count = is_paced ? ROWS_PER_S / FRAMES_PER_S : RL_WIRE_MAX_BULK_BYTES / (int64_t)sizeof(rl_activity_row);
  rl_activity_row *rows = malloc((size_t)max_count * sizeof *rows);
  bool cancelled = rows == NULL;
  for (int64_t first = 0; first < total && !cancelled; first += max_count) {
    int64_t count = total - first < max_count ? total - first : max_count;
    grow_rows(first, total, rows, count);
    add_rows_to_checksum(first, rows, count);
    exit_on_failure(rl_frame_write(OUT, RL_FRAME_ROWS, rows, (size_t)count * sizeof *rows, &err));
    if (is_paced) send_progress("activity", first, total);
    cancelled = is_cancelled(reader, is_paced ? 1000 / FRAMES_PER_S : 0);
  }
  free(rows);
  return cancelled;
}

static int64_t read_seed(const char *params) {
  const char *seed = strstr(params, "\"seed\":");
  return seed != NULL ? strtoll(seed + strlen("\"seed\":"), NULL, 10) : 0;
}

/* Executes one pass and sends its results. */
static void execute_pass(rl_frame_reader *reader, const rl_request *request) {
  const int64_t rows = read_seed(request->params);
  rl_claim claim = {.pass = (rl_pass)request->pass};
  rl_records records = {0};
  const record_plan plan = {.claim = &claim, .device = "cpu", .seed = (uint64_t)rows};
  snprintf(claim.run.workload, sizeof claim.run.workload, "%s", request->workload);
  snprintf(claim.run.variant, sizeof claim.run.variant, "fp32");
  while (strcmp(device_id, "cpu") != 0) {
    send_progress("timing", 0, 1);
    if (is_cancelled(reader, 1000)) return;
  }
  exit_on_failure(grow_records(&plan, &records, &err));
  exit_on_failure(rl_records_send(OUT, &records, &err));
  checksum = 0;
  add_epochs_to_checksum(&records);
  if (claim.pass != RL_PASS_ACTIVITY || !send_rows(reader, rows)) {
    log_pass("sending", &claim, rows, &records);
    exit_on_failure(rl_frame_write(OUT, RL_FRAME_DONE, NULL, 0, &err));
    log_pass("sent", &claim, rows, &records);
  }
  rl_records_clear(&records);
}

int main(int argc, char **argv) {
  const char *kind = strrchr(argv[0], '-');
  bool on_cpu = kind != NULL && strcmp(kind, "-cpu") == 0;
  rl_request request;
  if (argc == 2 && strcmp(argv[1], "--list") == 0) {
    send_hello(on_cpu ? "cpu" : "gpu0", on_cpu ? "any" : "unprofiled");
    return 0;
  }
  if (argc != 5) return 64; /* --device ID --role ROLE */
  device_id = argv[2];
  send_hello(device_id, argv[4]);
  rl_frame_reader *reader = rl_frame_reader_new(STDIN_FILENO);
  for (rl_frame frame; rl_frame_read(reader, -1, &frame, &err) == 0;) {
    memset(&request, 0, sizeof request);
    if (frame.type == RL_FRAME_RELEASE) exit_on_failure(rl_frame_write(OUT, RL_FRAME_RELEASED, NULL, 0, &err));
    if (frame.type != RL_FRAME_REQUEST) continue;
    exit_on_failure(
        rl_fields_parse(rl_request_fields, (const char *)frame.payload, frame.length, &request, sizeof request, &err));
    execute_pass(reader, &request);
  }
  rl_frame_reader_free(reader);
  return 0;
}
