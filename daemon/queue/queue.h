/* The queue and the state machine of jobs: queued -> running -> completed | failed | cancelled. A daemon that stops leaves jobs
 * `interrupted`, and one that crashes leaves them `running`; the next start sets both to `queued`, in their old order. Committed
 * passes stay; the unfinished pass is repeated. A job fails when its worker dies twice, or when the daemon or the host crashes
 * five times during its passes. All calls are thread-safe; every change is on disk before the call returns. */
#ifndef RL_QUEUE_QUEUE_H
#define RL_QUEUE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "model/job.h"

typedef struct rl_store rl_store;
typedef struct rl_queue rl_queue;

int rl_queue_open(rl_store *store, int64_t queue_limit, rl_queue **queue, rl_error *err); /* requeues interrupted jobs */
void rl_queue_close(rl_queue *queue);

enum { RL_DEVICES_MAX = 32 };

/* Sets the device ids, which of them are usable, and the default device (NULL: none). Called once, before requests are served. At
 * most RL_DEVICES_MAX devices. */
int rl_queue_set_devices(rl_queue *queue, const char *const *ids, const bool *usable, int count, const char *fallback,
                         rl_error *err);

/* Sets the names, one a line, of engines that the device cannot run: jobs that name one are refused at submission. */
void rl_queue_set_unsupported_engines(rl_queue *queue, const char *device, const char *names);

/* Sets the deadline of jobs without one, in seconds from their start; the default is 3600. */
void rl_queue_set_deadline(rl_queue *queue, int64_t seconds);

/* Enables a job of the daemon that measures the ceilings of a device again when its driver or clocks have changed; off by
 * default. */
void rl_queue_set_refresh(rl_queue *queue, bool refresh);

/* Accepts a job. key: the Idempotency-Key, or NULL. *existing: a job with this key and body hash exists, and *id is its id.
 * Errors: RL_INPUT at /device (unknown or unusable device, or a GPU is needed and there is none), RL_HTTP 422 (same key, other
 * body), 429 (queue full) and 503 (stopping), RL_STORAGE (RL_STORAGE_FULL: disk full). */
int rl_queue_submit(rl_queue *queue, rl_job_spec *spec, const char *key, const char *body_sha256, int64_t *id, bool *existing,
                    rl_error *err);
/* Cancels a queued or running job. Its worker learns of it by rl_queue_should_cancel; records that it still sends are discarded.
 * RL_HTTP 404, or 409 when the job has finished. */
int rl_queue_cancel(rl_queue *queue, int64_t id, rl_error *err);

/* --- for the thread that serves a device ------------------------------------------------------------------------------ */

/* Waits at most timeout_ms for the next pass of a device. Returns 1 and *claim, which the caller clears, or 0 on a timeout or
 * when the queue stops. The running job comes before the oldest queued one; a job is running from its first pass on. */
int rl_queue_claim(rl_queue *queue, const char *device, int timeout_ms, rl_claim *claim, rl_error *err);
/* Returns the id of the device's running job, 0: none. Never blocks, so it may be behind the store while a transition commits. */
int64_t rl_queue_job_on_device(rl_queue *queue, const char *device);
bool rl_queue_should_cancel(rl_queue *queue, int64_t job_id); /* never blocks; polled while a pass runs */
/* Stores progress as an event. Drops it when the job's last one is less than 250 ms old, or while another device's pass is
 * stored. */
void rl_queue_progress(rl_queue *queue, int64_t job_id, int64_t run_id, const rl_progress *progress);
/* Stores the compiler's log with the run, also when its pass fails. */
void rl_queue_log(rl_queue *queue, const rl_claim *claim, const char *text);
/* Stores all records of a finished pass, and completes the job after its last pass. */
int rl_queue_commit(rl_queue *queue, const rl_claim *claim, const rl_records *records, rl_error *err);
/* Fails the job because the worker reported an error. */
int rl_queue_fail(rl_queue *queue, const rl_claim *claim, const rl_error *why, rl_error *err);
/* Commits the pass as `unavailable` with the reason (no counters on a CPU, no privilege); the job continues. */
int rl_queue_unavailable(rl_queue *queue, const rl_claim *claim, const rl_records *records, const char *reason, rl_error *err);
/* The worker died or hung during the pass: the pass is retried once, then the job fails with the reason. */
int rl_queue_worker_died(rl_queue *queue, const rl_claim *claim, const char *reason, rl_error *err);
/* The worker has stopped for a cancelled job. */
int rl_queue_cancelled(rl_queue *queue, const rl_claim *claim, rl_error *err);
/* Ends all claims; each running job becomes `interrupted` when its thread calls rl_queue_interrupted. */
void rl_queue_stop(rl_queue *queue);
int rl_queue_interrupted(rl_queue *queue, const rl_claim *claim, rl_error *err);

/* Sets the only listener, or removes it (NULL). It is called after an event of a job was stored, without the queue's lock. When
 * this returns, the previous listener is not running. */
void rl_queue_set_listener(rl_queue *queue, void (*on_event)(void *context, int64_t job_id), void *context);

/* Statistics of jobs since the program started; valid as long as queue is. */
const struct rl_job_statistics *rl_queue_statistics(const rl_queue *queue);

int rl_queue_count(rl_queue *queue, rl_job_counts *counts, rl_error *err);

RL_DEFINE_CLEANUP(rl_queue_cleanup, rl_queue *, rl_queue_close, NULL)
#endif
