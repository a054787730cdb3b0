#include "supervisor/attempt.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

enum {
  CANCEL_WAIT_MS = 5000, /* how long a worker may take to obey a cancel */
  HELLO_WAIT_MS = 60000  /* making a CUDA context on a cold machine takes seconds */
};
static const int64_t MS = 1000000;

rl_answer rl_attempt_interruption(rl_attempt *at) {
  int64_t now = rl_monotonic_ns();
  if (atomic_load(at->stopping)) return RL_ANSWER_STOPPED;
  if (now >= at->claim->deadline_ns) {
    rl_fail(&at->why, RL_WIRE, RL_WIRE_TIMEOUT, "the job was not done by its deadline; its worker was killed");
    return RL_ANSWER_LATE;
  }
  if (!rl_queue_should_cancel(at->jobs, at->claim->job_id)) return RL_ANSWER_NONE;
  if (at->worker->process.pid == 0) return RL_ANSWER_CANCELLED;
  if (at->cancel_sent_ns == 0) {
    at->cancel_sent_ns = now;
    return rl_frame_write(at->worker->process.input, RL_FRAME_CANCEL, NULL, 0, &at->why) < 0 ? RL_ANSWER_IGNORED_CANCEL
                                                                                             : RL_ANSWER_NONE;
  }
  return now - at->cancel_sent_ns > CANCEL_WAIT_MS * MS ? RL_ANSWER_IGNORED_CANCEL : RL_ANSWER_NONE;
}

static rl_answer broken(rl_attempt *at, const char *what) {
  rl_fail(&at->why, RL_WIRE, RL_WIRE_PAYLOAD, "%s", what);
  return RL_ANSWER_DIED;
}

/* The worker's next frame, or what ended the wait for it. until_ns: when its silence counts as death; 0: never. */
static rl_answer next_frame(rl_attempt *at, int64_t until_ns, rl_frame *frame) {
  for (;;) {
    rl_answer outside = rl_attempt_interruption(at);
    if (outside != RL_ANSWER_NONE) return outside;
    if (rl_worker_hear(at->worker, RL_TICK_MS, frame, &at->why) == 0) return RL_ANSWER_NONE;
    if (at->why.domain != RL_WIRE || at->why.code != RL_WIRE_TIMEOUT) return RL_ANSWER_DIED;
    if (until_ns != 0 && rl_monotonic_ns() >= until_ns) return broken(at, "it said nothing after it was started");
  }
}

rl_answer rl_attempt_meet(rl_attempt *at) {
  rl_frame frame;
  rl_answer got = next_frame(at, rl_monotonic_ns() + HELLO_WAIT_MS * MS, &frame);
  if (got != RL_ANSWER_NONE) return got;
  return rl_worker_check_hello(at->worker, &frame, &at->why) < 0 ? RL_ANSWER_DIED : RL_ANSWER_NONE;
}

/* --- asking ------------------------------------------------------------------------------------------------------------ */

/* The text that the request will name goes ahead of it. */
static int send_source(rl_attempt *at) {
  const char *text = at->claim->source;
  if (text == NULL) return 0;
  at->worker->posted_job = at->claim->job_id;
  return rl_frame_write(at->worker->process.input, RL_FRAME_SOURCE, text, strlen(text), &at->why);
}

static int send_request(rl_attempt *at) {
  rl_request request = {.pass = (int)at->claim->pass};
  snprintf(request.workload, sizeof request.workload, "%s", at->claim->run.workload);
  snprintf(request.params, sizeof request.params, "%s", at->claim->run.params);
  snprintf(request.profile, sizeof request.profile, "%s", at->claim->profile);
  return rl_message_write(at->worker->process.input, RL_FRAME_REQUEST, rl_request_fields, &request, &at->why);
}

/* --- hearing ----------------------------------------------------------------------------------------------------------- */

static rl_domain domain_named(const char *name) {
  for (rl_domain domain = RL_SYS; domain <= RL_WIRE; domain++)
    if (strcmp(rl_domain_name(domain), name) == 0) return domain;
  return RL_SYS;
}

static rl_answer take_failure(rl_attempt *at, const rl_frame *frame, rl_answer meaning) {
  rl_failure failure = {0};
  if (rl_fields_parse(rl_failure_fields, (const char *)frame->payload, frame->length, &failure, sizeof failure, &at->why) < 0)
    return RL_ANSWER_DIED;
  rl_fail(&at->why, domain_named(failure.domain), (int)failure.code, "%s", failure.message);
  return meaning;
}

static rl_answer take_progress(rl_attempt *at, const rl_frame *frame) {
  rl_progress progress = {0};
  if (rl_fields_parse(rl_progress_fields, (const char *)frame->payload, frame->length, &progress, sizeof progress, &at->why) < 0)
    return RL_ANSWER_DIED;
  rl_queue_progress(at->jobs, at->claim->job_id, at->claim->run_id, &progress);
  return RL_ANSWER_NONE;
}

static rl_answer take_log(rl_attempt *at, const rl_frame *frame) {
  at->log_bytes += frame->length;
  if (at->log_bytes > RL_WIRE_CONTROL_MAX) return broken(at, "the compiler's logs are longer than one frame");
  rl_queue_log(at->jobs, at->claim, (const char *)frame->payload);
  return RL_ANSWER_NONE;
}

static rl_answer take_record(rl_attempt *at, const rl_frame *frame) {
  if (!at->records.has_facts && frame->type != RL_FRAME_FACTS) return broken(at, "the first frame of a pass is not FACTS");
  int rc = rl_records_receive(frame, &at->records, &at->why);
  if (rc == 0) return broken(at, "a frame came that workers don't send during a pass");
  return rc < 0 ? RL_ANSWER_DIED : RL_ANSWER_NONE;
}

static rl_answer take_frame(rl_attempt *at, const rl_frame *frame) {
  switch (frame->type) {
    case RL_FRAME_PROGRESS: return take_progress(at, frame);
    case RL_FRAME_LOG: return take_log(at, frame);
    case RL_FRAME_DONE: return at->records.has_facts ? RL_ANSWER_DONE : broken(at, "DONE came before FACTS");
    case RL_FRAME_UNAVAILABLE: return take_failure(at, frame, RL_ANSWER_UNAVAILABLE);
    case RL_FRAME_FAILED: return take_failure(at, frame, RL_ANSWER_FAILED);
    case RL_FRAME_CANCELLED: return at->cancel_sent_ns != 0 ? RL_ANSWER_CANCELLED : broken(at, "CANCELLED came unasked");
    default: return take_record(at, frame);
  }
}

rl_answer rl_attempt_perform(rl_attempt *at) {
  at->worker->holds = true;
  if (send_source(at) < 0 || send_request(at) < 0) return RL_ANSWER_DIED;
  rl_answer got = RL_ANSWER_NONE;
  while (got == RL_ANSWER_NONE) {
    rl_frame frame;
    got = next_frame(at, 0, &frame);
    if (got == RL_ANSWER_NONE) got = take_frame(at, &frame);
  }
  return got;
}
