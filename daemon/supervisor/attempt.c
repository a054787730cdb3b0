#include "supervisor/attempt.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

enum {
  CANCEL_WAIT_MS = 5000, /* a worker must answer CANCEL within this time */
  HELLO_WAIT_MS = 60000  /* creating a CUDA context takes seconds on an idle machine */
};
static const int64_t MS = 1000000;

rl_attempt_result rl_attempt_interruption(rl_attempt *attempt) {
  int64_t now = rl_monotonic_ns();
  if (atomic_load(attempt->stopping)) return RL_ATTEMPT_STOPPED;
  if (now >= attempt->claim->deadline_ns) {
    rl_fail(&attempt->why, RL_WIRE, RL_WIRE_TIMEOUT, "the job exceeded its deadline; its worker was killed");
    return RL_ATTEMPT_DEADLINE_EXCEEDED;
  }
  if (!rl_queue_should_cancel(attempt->jobs, attempt->claim->job_id)) return RL_ATTEMPT_PENDING;
  if (attempt->worker->process.pid == 0) return RL_ATTEMPT_CANCELLED;
  if (attempt->cancel_sent_ns == 0) {
    attempt->cancel_sent_ns = now;
    return rl_frame_write(attempt->worker->process.input, RL_FRAME_CANCEL, NULL, 0, &attempt->why) < 0 ? RL_ATTEMPT_IGNORED_CANCEL
                                                                                                       : RL_ATTEMPT_PENDING;
  }
  return now - attempt->cancel_sent_ns > CANCEL_WAIT_MS * MS ? RL_ATTEMPT_IGNORED_CANCEL : RL_ATTEMPT_PENDING;
}

static rl_attempt_result protocol_error(rl_attempt *attempt, const char *message) {
  rl_fail(&attempt->why, RL_WIRE, RL_WIRE_PAYLOAD, "%s", message);
  return RL_ATTEMPT_DIED;
}

/* Reads the worker's next frame: PENDING, or the result that ended the wait. until_ns: deadline of the frame; 0: none. */
static rl_attempt_result next_frame(rl_attempt *attempt, int64_t until_ns, rl_frame *frame) {
  for (;;) {
    rl_attempt_result interruption = rl_attempt_interruption(attempt);
    if (interruption != RL_ATTEMPT_PENDING) return interruption;
    if (rl_worker_read_frame(attempt->worker, RL_TICK_MS, frame, &attempt->why) >= 0) return RL_ATTEMPT_PENDING;
    if (attempt->why.domain != RL_WIRE || attempt->why.code != RL_WIRE_TIMEOUT) return RL_ATTEMPT_DIED;
    if (until_ns != 0 && rl_monotonic_ns() >= until_ns) return protocol_error(attempt, "it sent no HELLO after its start");
  }
}

rl_attempt_result rl_attempt_handshake(rl_attempt *attempt) {
  rl_frame frame;
  rl_attempt_result result = next_frame(attempt, rl_monotonic_ns() + HELLO_WAIT_MS * MS, &frame);
  if (result != RL_ATTEMPT_PENDING) return result;
  if (rl_worker_check_hello(attempt->worker, &frame, &attempt->why) < 0) return RL_ATTEMPT_DIED;
  rl_queue_set_unsupported_engines(attempt->jobs, attempt->worker->device, attempt->worker->unsupported_engines);
  return RL_ATTEMPT_PENDING;
}

/* --- request ------------------------------------------------------------------------------------------------------------ */

/* Sends the posted source, which the request names by hash, before the request. */
static int send_source(rl_attempt *attempt) {
  const char *text = attempt->claim->source;
  if (text == NULL) return 0;
  attempt->worker->posted_job = attempt->claim->job_id;
  return rl_frame_write(attempt->worker->process.input, RL_FRAME_SOURCE, text, strlen(text), &attempt->why);
}

static int send_request(rl_attempt *attempt) {
  rl_request request = {.pass = (int)attempt->claim->pass};
  snprintf(request.workload, sizeof request.workload, "%s", attempt->claim->run.workload);
  snprintf(request.params, sizeof request.params, "%s", attempt->claim->run.params);
  snprintf(request.profile, sizeof request.profile, "%s", attempt->claim->profile);
  return rl_message_write(attempt->worker->process.input, RL_FRAME_REQUEST, rl_request_fields, &request, &attempt->why);
}

/* --- frames from the worker
 * ----------------------------------------------------------------------------------------------------------- */

static rl_domain find_domain(const char *name) {
  for (rl_domain domain = RL_SYS; domain <= RL_WIRE; domain++)
    if (strcmp(rl_domain_name(domain), name) == 0) return domain;
  return RL_SYS;
}

static rl_attempt_result handle_failure(rl_attempt *attempt, const rl_frame *frame, rl_attempt_result result) {
  rl_failure failure = {0};
  if (rl_fields_parse(rl_failure_fields, (const char *)frame->payload, frame->length, &failure, sizeof failure, &attempt->why) <
      0)
    return RL_ATTEMPT_DIED;
  rl_fail(&attempt->why, find_domain(failure.domain), (int)failure.code, "%s", failure.message);
  return result;
}

static rl_attempt_result handle_progress(rl_attempt *attempt, const rl_frame *frame) {
  rl_progress progress = {0};
  if (rl_fields_parse(rl_progress_fields, (const char *)frame->payload, frame->length, &progress, sizeof progress,
                      &attempt->why) < 0)
    return RL_ATTEMPT_DIED;
  rl_queue_progress(attempt->jobs, attempt->claim->job_id, attempt->claim->run_id, &progress);
  return RL_ATTEMPT_PENDING;
}

static rl_attempt_result handle_log(rl_attempt *attempt, const rl_frame *frame) {
  attempt->log_bytes += frame->length;
  if (attempt->log_bytes > RL_WIRE_CONTROL_MAX) return protocol_error(attempt, "the compiler's logs are longer than one frame");
  rl_queue_log(attempt->jobs, attempt->claim, (const char *)frame->payload);
  return RL_ATTEMPT_PENDING;
}

static rl_attempt_result handle_record(rl_attempt *attempt, const rl_frame *frame) {
  if (!attempt->records.has_facts && frame->type != RL_FRAME_FACTS)
    return protocol_error(attempt, "the first frame of the pass is not FACTS");
  int rc = rl_records_receive(frame, &attempt->records, &attempt->why);
  if (rc == 0) return protocol_error(attempt, "a frame of this type is not allowed during a pass");
  return rc < 0 ? RL_ATTEMPT_DIED : RL_ATTEMPT_PENDING;
}

static rl_attempt_result handle_frame(rl_attempt *attempt, const rl_frame *frame) {
  switch (frame->type) {
    case RL_FRAME_PROGRESS: return handle_progress(attempt, frame);
    case RL_FRAME_LOG: return handle_log(attempt, frame);
    case RL_FRAME_DONE:
      return attempt->records.has_facts ? RL_ATTEMPT_DONE : protocol_error(attempt, "DONE arrived before FACTS");
    case RL_FRAME_UNAVAILABLE: return handle_failure(attempt, frame, RL_ATTEMPT_UNAVAILABLE);
    case RL_FRAME_FAILED: return handle_failure(attempt, frame, RL_ATTEMPT_FAILED);
    case RL_FRAME_CANCELLED:
      return attempt->cancel_sent_ns != 0 ? RL_ATTEMPT_CANCELLED : protocol_error(attempt, "CANCELLED arrived without a CANCEL");
    default: return handle_record(attempt, frame);
  }
}

rl_attempt_result rl_attempt_run(rl_attempt *attempt) {
  attempt->worker->may_hold_device = true;
  if (send_source(attempt) < 0 || send_request(attempt) < 0) return RL_ATTEMPT_DIED;
  rl_attempt_result result = RL_ATTEMPT_PENDING;
  while (result == RL_ATTEMPT_PENDING) {
    rl_frame frame;
    result = next_frame(attempt, 0, &frame);
    if (result == RL_ATTEMPT_PENDING) result = handle_frame(attempt, &frame);
  }
  return result;
}
