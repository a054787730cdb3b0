/* The queue and the state machine of jobs. States: queued -> running -> completed | failed | cancelled; a daemon that stops
 * or dies leaves `interrupted` or `running`, and the next start puts both back to `queued` in their old place: passes that were
 * committed stay, the unfinished one is done again. A job that kills its worker twice, or that ran at five
 * crashes of the daemon or the host, is failed. All calls are thread-safe; every change is on disk before the call returns. */
#ifndef RL_QUEUE_QUEUE_H
#define RL_QUEUE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "model/job.h"

typedef struct rl_store rl_store;
typedef struct rl_queue rl_queue;

int rl_queue_open(rl_store *store, int64_t queue_limit, rl_queue **jobs, rl_error *err); /* requeues what was interrupted */
void rl_queue_close(rl_queue *jobs);

enum { RL_DEVICES_MAX = 32 };

/* Which device ids exist and which one is the default; told once by the fleet, before requests are served; at most
 * RL_DEVICES_MAX. */
int rl_queue_set_devices(rl_queue *jobs, const char *const *ids, const bool *usable, int count, const char *fallback,
                         rl_error *err);

/* What a job without a deadline of its own may take from its start, in seconds; 3600 until it is told. */
void rl_queue_set_deadline(rl_queue *jobs, int64_t seconds);

/* Measure the ceilings of a device again, by a job of the daemon's own, when a pass finds its driver or clocks changed; not until
 * told. */
void rl_queue_set_refresh(rl_queue *jobs, bool refresh);

/* Accept a job. key NULL: no idempotency. *existing is true when the key and the body hash were seen before (then *id is the
 * earlier job). Errors: RL_INPUT at /device (unknown or unusable device, or no GPU where one is needed), RL_HTTP 422 (same key,
 * other body), RL_HTTP 429 (queue full), RL_HTTP 503 (stopping), RL_SQLITE/RL_SYS (507-like: disk full). */
int rl_queue_submit(rl_queue *jobs, rl_job_spec *spec, const char *key, const char *body_sha256, int64_t *id, bool *existing,
                    rl_error *err);
/* Cancel, on disk when it returns, queued or running; a worker that is at it is told, and what it yet yields is thrown away.
 * RL_HTTP 404; 409 when it has finished already. */
int rl_queue_cancel(rl_queue *jobs, int64_t id, rl_error *err);

/* --- for the lane that serves a device --------------------------------------------------------------------------------- */

/* Wait for the next pass to do on this device, at most timeout_ms: 1 and *claim, which the caller clears, 0 on time-out or when
 * stopping, -1 on error. Moves the job to running with its first pass; prefers the running job, then the oldest queued one. */
int rl_queue_claim(rl_queue *jobs, const char *device, int timeout_ms, rl_claim *claim, rl_error *err);
/* The job that the device works on, 0: none. Waits for nothing, not for a pass that is being stored either; agrees with the store
 * but for the moment between a transition's commit and its being known here. */
int64_t rl_queue_job_on_device(rl_queue *jobs, const char *device);
bool rl_queue_should_cancel(rl_queue *jobs, int64_t job_id); /* waits for nothing; polled while a pass runs */
/* Record progress as an event (at most 4 a second a job are kept; the rest is dropped, and so is what comes while another lane's
 * pass is being stored). */
void rl_queue_progress(rl_queue *jobs, int64_t job_id, int64_t run_id, const rl_progress *progress);
/* What the compiler said of the run's code; kept with the run whatever becomes of it. */
void rl_queue_log(rl_queue *jobs, const rl_claim *claim, const char *text);
/* Store a finished pass as a whole, and complete the job when it was the last. */
int rl_queue_commit(rl_queue *jobs, const rl_claim *claim, const rl_records *records, rl_error *err);
/* The worker said the pass can't be done: the job fails. */
int rl_queue_fail(rl_queue *jobs, const rl_claim *claim, const rl_error *why, rl_error *err);
/* The pass is unavailable here (no counters on a CPU, privilege refused): committed as `unavailable` with the reason; the job
 * goes on. */
int rl_queue_unavailable(rl_queue *jobs, const rl_claim *claim, const rl_records *records, const char *reason, rl_error *err);
/* The worker died or hung during the pass: retried once, then the job fails with the reason. */
int rl_queue_worker_died(rl_queue *jobs, const rl_claim *claim, const char *reason, rl_error *err);
/* The worker obeyed a cancel. */
int rl_queue_cancelled(rl_queue *jobs, const rl_claim *claim, rl_error *err);
/* No more claims; running jobs become `interrupted` once their lane lets go. */
void rl_queue_stop(rl_queue *jobs);
int rl_queue_interrupted(rl_queue *jobs, const rl_claim *claim, rl_error *err);

/* Called, outside any lock, after an event of a job was stored: the API wakes its SSE listeners with it. One listener. */
void rl_queue_set_listener(rl_queue *jobs, void (*heard)(void *context, int64_t job_id), void *context);

/* What became of jobs since the program started; lives as long as jobs. */
const struct rl_job_statistics *rl_queue_statistics(const rl_queue *jobs);

int rl_queue_count(rl_queue *jobs, rl_job_counts *counts, rl_error *err);

RL_DEFINE_CLEANUP(rl_queue_cleanup, rl_queue *, rl_queue_close, NULL)
#endif
