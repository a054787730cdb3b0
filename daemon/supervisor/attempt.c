/* Implements attempt.h. Reads the worker's frames in a loop. Checks every 100 ms whether the daemon stops, the deadline has
 * passed, the job was cancelled, or the worker is silent. Activity rows that can't be stored wait in memory. While the waiting
 * rows of all devices together exceed 32 MiB, the worker's pipe is not read. */
#include "supervisor/attempt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "store/store.h"

enum {
  MAX_SILENCE_MS = 30000, /* maximum time without a frame; a worker that executes a request sends a HEARTBEAT every 5 s */
  CANCEL_WAIT_MS = 5000,  /* a worker must answer CANCEL within this time */
  DATABASE_PAUSE_MS = 200 /* pause before the next try to write to a database that is full or locked */
};
static const int64_t NS_PER_MS = 1000000, MAX_WAITING_BYTES = 32 << 20;

rl_attempt_result rl_attempt_check_interruption(rl_attempt *attempt) {
  int64_t now = rl_monotonic_ns();
  if (atomic_load(attempt->stopping)) return RL_ATTEMPT_STOPPED;
  if (now >= attempt->claim->deadline_ns + attempt->unread_ns) {
    rl_fail(&attempt->error, RL_WIRE, RL_WIRE_TIMEOUT, "the job exceeded its deadline; its worker was killed");
    return RL_ATTEMPT_DEADLINE_EXCEEDED;
  }
  if (!rl_queue_should_cancel(attempt->jobs, attempt->claim->job_id)) return RL_ATTEMPT_CONTINUE;
  if (attempt->worker->process.pid == 0) return RL_ATTEMPT_CANCELLED;
  if (attempt->cancel_sent_ns == 0) {
    attempt->cancel_sent_ns = now;
    return rl_frame_write(attempt->worker->process.input, RL_FRAME_CANCEL, NULL, 0, &attempt->error) < 0
               ? RL_ATTEMPT_IGNORED_CANCEL
               : RL_ATTEMPT_CONTINUE;
  }
  return now - attempt->cancel_sent_ns > CANCEL_WAIT_MS * NS_PER_MS ? RL_ATTEMPT_IGNORED_CANCEL : RL_ATTEMPT_CONTINUE;
}

static rl_attempt_result fail_protocol(rl_attempt *attempt, const char *message) {
  rl_fail(&attempt->error, RL_WIRE, RL_WIRE_MALFORMED_PAYLOAD, "%s", message);
  return RL_ATTEMPT_DIED;
}

static rl_attempt_result fail_silent_worker(rl_attempt *attempt) {
  const rl_heartbeat *last = &attempt->heartbeat;
  rl_fail(&attempt->error, RL_WIRE, RL_WIRE_TIMEOUT,
          "it sent no frame for %d s; its last heartbeat was in the stage \"%s\", %.1f s after the last check point",
          MAX_SILENCE_MS / 1000, last->stage, (double)last->idle_ms / 1000);
  return RL_ATTEMPT_DIED;
}

/* Waits for the worker's next frame. Returns CONTINUE, or the result that ends the attempt. until_ns: rl_monotonic_ns until which
 * the frame must arrive; 0: no limit. */
static rl_attempt_result wait_for_frame(rl_attempt *attempt, int64_t until_ns, rl_frame *frame) {
  const int64_t begin_ns = rl_monotonic_ns();
  for (;;) {
    rl_attempt_result interruption = rl_attempt_check_interruption(attempt);
    if (interruption != RL_ATTEMPT_CONTINUE) return interruption;
    if (rl_worker_read_frame(attempt->worker, RL_POLL_INTERVAL_MS, frame, &attempt->error) >= 0) return RL_ATTEMPT_CONTINUE;
    if (attempt->error.domain != RL_WIRE || attempt->error.code != RL_WIRE_TIMEOUT) return RL_ATTEMPT_DIED;
    if (until_ns != 0 && rl_monotonic_ns() >= until_ns) return fail_protocol(attempt, "it sent no HELLO after its start");
    if (until_ns == 0 && rl_monotonic_ns() - begin_ns >= MAX_SILENCE_MS * NS_PER_MS) return fail_silent_worker(attempt);
  }
}

int rl_attempt_accept_hello(rl_queue *jobs, rl_worker *worker, const rl_frame *frame, rl_error *err) {
  if (rl_worker_check_hello(worker, frame, err) < 0) return -1;
  /* New jobs are checked against the engines of the daemon's own workers, not against the engines of other builds. */
  if (worker->build[0] == '\0') rl_queue_set_unsupported_engines(jobs, worker->device, worker->unsupported_engines);
  return 0;
}

rl_attempt_result rl_attempt_handshake(rl_attempt *attempt, int wait_ms) {
  rl_frame frame;
  rl_attempt_result result = wait_for_frame(attempt, attempt->worker->started_ns + wait_ms * NS_PER_MS, &frame);
  if (result != RL_ATTEMPT_CONTINUE) return result;
  return rl_attempt_accept_hello(attempt->jobs, attempt->worker, &frame, &attempt->error) < 0 ? RL_ATTEMPT_DIED
                                                                                              : RL_ATTEMPT_CONTINUE;
}

/* --- request ------------------------------------------------------------------------------------------------------------ */

/* Sends the posted code in a SOURCE frame. The REQUEST frame that follows contains only the hash of the code. */
static int send_source(rl_attempt *attempt) {
  const char *text = attempt->claim->source_json;
  if (text == NULL) return 0;
  attempt->worker->posted_code_job_id = attempt->claim->job_id;
  return rl_frame_write(attempt->worker->process.input, RL_FRAME_SOURCE, text, strlen(text), &attempt->error);
}

static int send_request(rl_attempt *attempt) {
  attempt->worker->last_job_id = attempt->claim->job_id;
  rl_request request = {.pass = (int)attempt->claim->pass, .opening_overlapped = attempt->worker->opening_overlapped};
  snprintf(request.workload, sizeof request.workload, "%s", attempt->claim->run.workload);
  snprintf(request.params, sizeof request.params, "%s", attempt->claim->run.params);
  snprintf(request.profile, sizeof request.profile, "%s", attempt->claim->profile);
  return rl_frame_write_json(attempt->worker->process.input, RL_FRAME_REQUEST, rl_request_fields, &request, &attempt->error);
}

/* --- frames from the worker --------------------------------------------------------------------------------------------- */

static rl_error_domain find_domain(const char *name) {
  for (rl_error_domain domain = RL_ERRNO; domain <= RL_WIRE; domain++)
    if (strcmp(rl_domain_name(domain), name) == 0) return domain;
  return RL_ERRNO;
}

static rl_attempt_result handle_failure(rl_attempt *attempt, const rl_frame *frame, rl_attempt_result result) {
  rl_failure failure = {0};
  if (rl_fields_parse(rl_failure_fields, (const char *)frame->payload, frame->length, &failure, sizeof failure, &attempt->error) <
      0)
    return RL_ATTEMPT_DIED;
  if (!failure.has_executed_source) attempt->worker->posted_code_job_id = 0;
  rl_fail(&attempt->error, find_domain(failure.domain), (int)failure.code, "%s", failure.message);
  return result;
}

static rl_attempt_result handle_progress(rl_attempt *attempt, const rl_frame *frame) {
  rl_progress progress = {0};
  if (rl_fields_parse(rl_progress_fields, (const char *)frame->payload, frame->length, &progress, sizeof progress,
                      &attempt->error) < 0)
    return RL_ATTEMPT_DIED;
  rl_queue_publish_progress(attempt->jobs, attempt->claim->job_id, attempt->claim->run_id, &progress);
  return RL_ATTEMPT_CONTINUE;
}

static rl_attempt_result handle_heartbeat(rl_attempt *attempt, const rl_frame *frame) {
  rl_heartbeat *last = &attempt->heartbeat;
  if (rl_fields_parse(rl_heartbeat_fields, (const char *)frame->payload, frame->length, last, sizeof *last, &attempt->error) < 0)
    return RL_ATTEMPT_DIED;
  if (last->idle_ms <= last->limit_ms) return RL_ATTEMPT_CONTINUE;
  rl_fail(&attempt->error, RL_WIRE, RL_WIRE_TIMEOUT,
          "its main thread hangs in the stage \"%s\": no progress for %lld s, and %lld s are allowed", last->stage,
          (long long)last->idle_ms / 1000, (long long)last->limit_ms / 1000);
  return RL_ATTEMPT_DIED;
}

static rl_attempt_result handle_log(rl_attempt *attempt, const rl_frame *frame) {
  attempt->log_bytes += frame->length;
  if (attempt->log_bytes > RL_WIRE_MAX_MESSAGE_BYTES) return fail_protocol(attempt, "the run's logs are longer than one frame");
  free(attempt->log);
  attempt->log = strdup((const char *)frame->payload);
  rl_error ignored;
  (void)rl_attempt_store_log(attempt, &ignored); /* if this fails, the log is stored at the end of the pass */
  return RL_ATTEMPT_CONTINUE;
}

int rl_attempt_store_log(rl_attempt *attempt, rl_error *err) {
  if (attempt->log == NULL) return 0;
  if (rl_queue_store_log(attempt->jobs, attempt->claim, attempt->log, err) < 0) return -1;
  free(attempt->log);
  attempt->log = NULL;
  return 0;
}

/* --- activity rows ----------------------------------------------------------------------------------------------------- */

static int store_slice(rl_attempt *attempt, rl_error *err) {
  if (attempt->appender == NULL) attempt->appender = rl_activity_appender_new();
  if (attempt->appender == NULL) return rl_fail(err, RL_STORAGE, RL_STORAGE_MEMORY, "out of memory for activity rows");
  return rl_queue_append_activity(attempt->jobs, attempt->claim, attempt->appender, &attempt->records, err);
}

int rl_attempt_store_rows(rl_attempt *attempt, size_t max_left, rl_error *err) {
  rl_error failure;
  while (attempt->records.row_count > max_left) {
    if (store_slice(attempt, &failure) >= 0) continue;
    if (failure.domain == RL_STORAGE) {
      if (err != NULL) *err = failure;
      return -1;
    }
    rl_records_drop_rows(&attempt->records, attempt->records.row_count); /* the job has ended */
  }
  return 0;
}

/* Waits before the next try to use the database. Returns CONTINUE, or the result that ends the attempt. */
static rl_attempt_result wait_for_database(rl_attempt *attempt) {
  const int64_t begin_ns = rl_monotonic_ns(), until_ns = begin_ns + DATABASE_PAUSE_MS * NS_PER_MS;
  const int64_t unread_ns = attempt->unread_ns;
  for (;;) {
    /* The worker may block during this time, because its pipe may be full. */
    attempt->unread_ns = unread_ns + rl_monotonic_ns() - begin_ns;
    rl_attempt_result interruption = rl_attempt_check_interruption(attempt);
    if (interruption != RL_ATTEMPT_CONTINUE || rl_monotonic_ns() >= until_ns) return interruption;
    nanosleep(&(struct timespec){.tv_nsec = RL_POLL_INTERVAL_MS * NS_PER_MS}, NULL);
  }
}

static void log_database_failure(const rl_attempt *attempt, const char *action, const rl_error *err) {
  rl_log(RL_LOG_ERROR, "job %lld: can't %s the activity rows of its %s pass: %s", (long long)attempt->claim->job_id, action,
         rl_pass_names[attempt->claim->pass], err->message);
}

/* Sum of waiting_bytes over the attempts of all devices. */
static _Atomic int64_t total_waiting_bytes;

bool rl_attempt_set_waiting_bytes(rl_attempt *attempt, int64_t bytes) {
  int64_t added = bytes - attempt->waiting_bytes;
  attempt->waiting_bytes = bytes;
  return atomic_fetch_add(&total_waiting_bytes, added) + added > MAX_WAITING_BYTES;
}

/* Sets attempt->waiting_bytes to the size of the activity rows in memory. Returns whether the sum over all devices exceeds
 * MAX_WAITING_BYTES. */
static bool waiting_rows_exceed_limit(rl_attempt *attempt) {
  return rl_attempt_set_waiting_bytes(attempt, (int64_t)(attempt->records.row_count * sizeof *attempt->records.rows));
}

/* Stores the full slices of the received activity rows. If the database can't be written now, the rows stay in memory for a later
 * call. While more than MAX_WAITING_BYTES wait, this function does not return, so that the worker's pipe is not read. Returns
 * CONTINUE, or the result that ends the attempt. */
static rl_attempt_result store_full_slices(rl_attempt *attempt) {
  rl_error err;
  if (attempt->next_store_ns > rl_monotonic_ns() && !waiting_rows_exceed_limit(attempt)) return RL_ATTEMPT_CONTINUE;
  while (rl_attempt_store_rows(attempt, RL_SLICE_ROWS - 1, &err) < 0) {
    if (err.code == RL_STORAGE_CONSTRAINT) return fail_protocol(attempt, err.message);
    if (attempt->next_store_ns == 0) log_database_failure(attempt, "store", &err);
    attempt->next_store_ns = rl_monotonic_ns() + DATABASE_PAUSE_MS * NS_PER_MS;
    if (!waiting_rows_exceed_limit(attempt)) return RL_ATTEMPT_CONTINUE;
    rl_attempt_result interruption = wait_for_database(attempt);
    if (interruption != RL_ATTEMPT_CONTINUE) return interruption;
  }
  if (attempt->next_store_ns != 0) rl_attempt_set_waiting_bytes(attempt, 0);
  attempt->next_store_ns = 0;
  return RL_ATTEMPT_CONTINUE;
}

rl_attempt_result rl_attempt_discard_rows(rl_attempt *attempt) {
  rl_error err;
  for (bool logged = false; rl_queue_discard_activity(attempt->jobs, attempt->claim, attempt->stopping, &err) < 0;
       logged = true) {
    if (!logged) log_database_failure(attempt, "delete", &err);
    rl_attempt_result interruption = wait_for_database(attempt);
    if (interruption != RL_ATTEMPT_CONTINUE) return interruption;
  }
  return RL_ATTEMPT_CONTINUE;
}

rl_attempt_result rl_attempt_discard_results(rl_attempt *attempt) {
  const bool has_rows = attempt->appender != NULL;
  rl_attempt_clear(attempt);
  attempt->log_bytes = 0;
  return has_rows ? rl_attempt_discard_rows(attempt) : RL_ATTEMPT_CONTINUE;
}

void rl_attempt_clear(rl_attempt *attempt) {
  rl_attempt_set_waiting_bytes(attempt, 0);
  rl_records_clear(&attempt->records);
  rl_activity_appender_free(attempt->appender);
  attempt->appender = NULL;
  free(attempt->log);
  attempt->log = NULL;
}

/* --- frames ------------------------------------------------------------------------------------------------------------ */

static rl_attempt_result handle_record(rl_attempt *attempt, const rl_frame *frame) {
  if (!attempt->records.has_metadata && frame->type != RL_FRAME_METADATA)
    return fail_protocol(attempt, "the first frame of the pass is not METADATA");
  int rc = rl_records_receive(frame, &attempt->records, &attempt->error);
  if (rc == 0) return fail_protocol(attempt, "a frame of this type is not allowed during a pass");
  return rc < 0 ? RL_ATTEMPT_DIED : store_full_slices(attempt);
}

static rl_attempt_result handle_frame(rl_attempt *attempt, const rl_frame *frame) {
  switch (frame->type) {
    case RL_FRAME_PROGRESS: return handle_progress(attempt, frame);
    case RL_FRAME_LOG: return handle_log(attempt, frame);
    case RL_FRAME_HEARTBEAT: return handle_heartbeat(attempt, frame);
    case RL_FRAME_DONE:
      return attempt->records.has_metadata ? RL_ATTEMPT_DONE : fail_protocol(attempt, "DONE arrived before METADATA");
    case RL_FRAME_UNAVAILABLE: return handle_failure(attempt, frame, RL_ATTEMPT_UNAVAILABLE);
    case RL_FRAME_FAILED: return handle_failure(attempt, frame, RL_ATTEMPT_FAILED);
    case RL_FRAME_CANCELLED:
      return attempt->cancel_sent_ns != 0 ? RL_ATTEMPT_CANCELLED : fail_protocol(attempt, "CANCELLED arrived without a CANCEL");
    default: return handle_record(attempt, frame);
  }
}

rl_attempt_result rl_attempt_run(rl_attempt *attempt) {
  attempt->worker->may_hold_device = true;
  if (send_source(attempt) < 0 || send_request(attempt) < 0) return RL_ATTEMPT_DIED;
  rl_attempt_result result = RL_ATTEMPT_CONTINUE;
  while (result == RL_ATTEMPT_CONTINUE) {
    rl_frame frame;
    result = wait_for_frame(attempt, 0, &frame);
    if (result == RL_ATTEMPT_CONTINUE) result = handle_frame(attempt, &frame);
  }
  return result;
}
