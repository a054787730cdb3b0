/* Implements worker.h. A worker is in one of four states: it has no process, is starting (is_ready is false), is idle (it has
 * sent HELLO and waits for a request), or executes a request. */
#include "supervisor/worker.h"

#include <stdio.h>
#include <string.h>

#include "base/cache.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/named_paths.h"

enum { UNEXPECTED_FRAME_GRACE_MS = 100, EXIT_GRACE_MS = 200, RELEASE_WAIT_MS = 2000 };

/* Writes the path of the program that the next process runs into `path`. Fails with RL_INPUT if the setting `builds` does not
 * name worker->build. */
static int find_program(const rl_worker *worker, char path[2 * RL_PATH_SIZE], rl_error *err) {
  char folder[RL_PATH_SIZE];
  const char *name = strrchr(worker->program, '/');
  if (worker->build[0] == '\0') return snprintf(path, 2 * RL_PATH_SIZE, "%s", worker->program), 0;
  if (!rl_named_paths_find(worker->config->builds, worker->build, folder, sizeof folder))
    return rl_fail(err, RL_INPUT, 0, "the setting `builds` has no build %s any more", worker->build);
  snprintf(path, 2 * RL_PATH_SIZE, "%s/%s", folder, name != NULL ? name + 1 : worker->program);
  return 0;
}

const char *rl_worker_name(const rl_worker *worker) {
  if (strcmp(worker->role, "unprofiled") == 0) return "unprofiled worker";
  return strcmp(worker->role, "profiled") == 0 ? "profiled worker" : "worker";
}

/* Starts the process. waits: the process opens the device only after an OPEN frame. */
static int start(rl_worker *worker, int inherited_fd, bool waits, rl_error *err) {
  const rl_config *config = worker->config;
  char program[2 * RL_PATH_SIZE];
  if (find_program(worker, program, err) < 0) return -1;
  char mnist[RL_PATH_SIZE + 32], cache[RL_PATH_SIZE + 32], includes[RL_PATH_SIZE + 32], threads[64], log_level[64];
  snprintf(mnist, sizeof mnist, "ROOFLINED_MNIST_DIR=%s", config->mnist_dir);
  snprintf(threads, sizeof threads, "ROOFLINED_THREADS=%lld", (long long)config->threads);
  snprintf(cache, sizeof cache, "ROOFLINED_CACHE_DIR=%s/" RL_CACHE_FOLDER, config->state);
  snprintf(includes, sizeof includes, "ROOFLINED_SOURCE_INCLUDES=%s", config->source_includes);
  snprintf(log_level, sizeof log_level, "ROOFLINED_LOG_LEVEL=%s", config->log_level);
  const char *const variables[] = {mnist, cache, includes, threads, log_level, NULL};
  const char *const arguments[] = {program, "--device", worker->device, "--role", worker->role, waits ? "--wait" : NULL, NULL};
  if (rl_process_start(arguments, variables, -1, inherited_fd, &worker->process, err) < 0) return -1;
  worker->started_ns = rl_monotonic_ns();
  worker->waits_for_open = waits;
  worker->reader = rl_frame_reader_new(worker->process.output);
  if (worker->reader == NULL) return rl_fail(err, RL_WIRE, RL_WIRE_MEMORY_LIMIT, "no memory for a worker's frames");
  rl_log(RL_LOG_INFO, "%s: started the %s%s%s, process %d", worker->device, rl_worker_name(worker),
         worker->build[0] != '\0' ? " of build " : "", worker->build, (int)worker->process.pid);
  return 0;
}

int rl_worker_start(rl_worker *worker, int inherited_fd, rl_error *err) { return start(worker, inherited_fd, false, err); }

void rl_worker_reap_killed(rl_worker *worker) {
  char exit_status[RL_EXIT_STATUS_SIZE];
  rl_process_terminate(&worker->previous, 0, exit_status);
}

static void forget_process(rl_worker *worker) {
  rl_frame_reader_free(worker->reader);
  worker->reader = NULL;
  worker->posted_code_job_id = worker->last_job_id = 0;
  worker->is_ready = worker->opening_overlapped = worker->may_hold_device = worker->waits_for_open = false;
}

void rl_worker_end(rl_worker *worker, int grace_ms, char exit_status[RL_EXIT_STATUS_SIZE]) {
  rl_worker_reap_killed(worker);
  rl_process_terminate(&worker->process, grace_ms, exit_status);
  forget_process(worker);
}

void rl_worker_verify_idle(rl_worker *worker) {
  rl_frame frame;
  rl_error err;
  char exit_status[RL_EXIT_STATUS_SIZE];
  if (!worker->is_ready) return;
  if (rl_frame_read(worker->reader, 0, &frame, &err) < 0 && err.domain == RL_WIRE && err.code == RL_WIRE_TIMEOUT) return;
  rl_worker_end(worker, UNEXPECTED_FRAME_GRACE_MS, exit_status);
  rl_log(RL_LOG_WARNING, "%s: the idle %s %s", worker->device, rl_worker_name(worker), exit_status);
}

static bool confirm_release(rl_worker *worker) {
  rl_frame frame;
  rl_error err;
  return rl_frame_write(worker->process.input, RL_FRAME_RELEASE, NULL, 0, &err) >= 0 &&
         rl_worker_read_frame(worker, RELEASE_WAIT_MS, &frame, &err) >= 0 && frame.type == RL_FRAME_RELEASED;
}

void rl_worker_release(rl_worker *worker) {
  char exit_status[RL_EXIT_STATUS_SIZE];
  rl_worker_verify_idle(worker);
  if (!worker->may_hold_device) return;
  worker->may_hold_device = false;
  if (confirm_release(worker)) return;
  rl_worker_end(worker, 0, exit_status);
  rl_log(RL_LOG_WARNING, "%s: the %s did not release the device: it %s", worker->device, rl_worker_name(worker), exit_status);
}

bool rl_worker_has_run_other_posted_code(const rl_worker *worker, int64_t job_id) {
  return worker->posted_code_job_id != 0 && worker->posted_code_job_id != job_id;
}

void rl_worker_start_ahead(rl_worker *worker) {
  char exit_status[RL_EXIT_STATUS_SIZE];
  rl_error err;
  if (start(worker, -1, true, &err) >= 0) return;
  rl_worker_end(worker, 0, exit_status);
  rl_log(RL_LOG_WARNING, "%s: can't start the %s ahead of its next job: %s", worker->device, rl_worker_name(worker), err.message);
}

void rl_worker_kill(rl_worker *worker) {
  const int64_t posted_code_job_id = worker->posted_code_job_id;
  if (worker->process.pid == 0) return;
  rl_worker_reap_killed(worker);
  rl_process_kill(&worker->process);
  worker->previous = worker->process;
  worker->process = (rl_process){0};
  forget_process(worker);
  worker->posted_code_job_id = posted_code_job_id;
}

void rl_worker_replace(rl_worker *worker) {
  rl_worker_kill(worker);
  worker->posted_code_job_id = 0;
  rl_worker_start_ahead(worker);
}

void rl_worker_open_device(rl_worker *worker) {
  rl_error err;
  if (!worker->waits_for_open) return;
  worker->waits_for_open = false;
  (void)rl_frame_write(worker->process.input, RL_FRAME_OPEN, NULL, 0,
                       &err); /* fails if the process has exited: no HELLO arrives */
}

bool rl_worker_is_opening(const rl_worker *worker) {
  return worker->process.pid != 0 && !worker->waits_for_open && !worker->is_ready;
}

void rl_worker_end_after_other_job(rl_worker *worker, int64_t job_id) {
  char exit_status[RL_EXIT_STATUS_SIZE];
  if (worker->last_job_id != 0 && worker->last_job_id != job_id) rl_worker_end(worker, EXIT_GRACE_MS, exit_status);
}

void rl_worker_select_build(rl_worker *worker, const char *build) {
  char exit_status[RL_EXIT_STATUS_SIZE];
  if (strcmp(worker->build, build) == 0) return;
  rl_worker_end(worker, EXIT_GRACE_MS, exit_status);
  snprintf(worker->build, sizeof worker->build, "%s", build);
}

int rl_worker_read_frame(rl_worker *worker, int timeout_ms, rl_frame *frame, rl_error *err) {
  if (rl_frame_read(worker->reader, timeout_ms, frame, err) < 0) return -1;
  worker->received_frames++;
  worker->received_bytes += RL_WIRE_HEADER_BYTES + frame->length;
  return 0;
}

int rl_worker_check_hello(rl_worker *worker, const rl_frame *frame, rl_error *err) {
  rl_hello hello = {0};
  if (frame->type != RL_FRAME_HELLO)
    return rl_fail(err, RL_WIRE, RL_WIRE_MALFORMED_PAYLOAD, "the worker's first frame is not HELLO");
  if (rl_fields_parse(rl_hello_fields, (const char *)frame->payload, frame->length, &hello, sizeof hello, err) < 0) return -1;
  if (hello.protocol != RL_WIRE_VERSION)
    return rl_fail(err, RL_WIRE, RL_WIRE_BAD_VERSION, "the worker's protocol has version %lld, the daemon's %d",
                   (long long)hello.protocol, RL_WIRE_VERSION);
  if (strcmp(hello.device, worker->device) != 0 || strcmp(hello.role, worker->role) != 0)
    return rl_fail(err, RL_WIRE, RL_WIRE_MALFORMED_PAYLOAD, "the worker's HELLO names another device or role");
  if (!hello.usable) return rl_fail(err, RL_WIRE, RL_WIRE_MALFORMED_PAYLOAD, "%s", hello.reason);
  memcpy(worker->unsupported_engines, hello.unsupported_engines, sizeof worker->unsupported_engines);
  worker->is_ready = true;
  return 0;
}
