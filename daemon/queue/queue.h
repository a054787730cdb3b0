/* The queue and the state machine of jobs: queued -> running -> completed | failed | cancelled. HTTP handlers and the suite
 * runner submit and cancel jobs; the thread of each device (supervisor/device_runner.h) claims their passes and reports the
 * results. When the daemon stops, running jobs become `interrupted`; after a crash of the daemon they are still `running`. When
 * the daemon starts again, it sets running and interrupted jobs to `queued`, in their original order. Their committed passes are
 * kept; the other passes are executed again. A job fails when its worker has died twice, or when the daemon or the host has
 * crashed five times during its passes. All functions are thread-safe, and their changes are on disk when they return.
 *
 * A function that changes the database fails with RL_STORAGE_LOCKED if another program holds the database's lock for 100 ms. The
 * queue's mutex is not held while a function waits for that lock. */
#ifndef RL_QUEUE_QUEUE_H
#define RL_QUEUE_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/listener.h"
#include "model/job.h"

typedef struct rl_store rl_store;
typedef struct rl_queue rl_queue;
typedef struct rl_activity_appender rl_activity_appender; /* store.h */

/* Opens the queue, and queues again the jobs that were running when the daemon stopped. queue_limit: maximum number of queued
 * jobs. */
int rl_queue_open(rl_store *store, int64_t queue_limit, rl_queue **queue, rl_error *err);
void rl_queue_close(rl_queue *queue);

enum { RL_DEVICES_MAX = 32 };

/* Sets the ids of the devices (at most RL_DEVICES_MAX) and whether each is usable. default_device: device of jobs that name no
 * device; NULL: such jobs are refused. Called once, before requests are served. */
int rl_queue_set_devices(rl_queue *queue, const char *const *ids, const bool *is_usable, int count, const char *default_device,
                         rl_error *err);

/* Sets the names of the engines that the device can't run, one name per line. rl_queue_submit_job refuses jobs that name one of
 * them. */
void rl_queue_set_unsupported_engines(rl_queue *queue, const char *device, const char *names);

/* Sets the time limit, from start to end, of jobs whose request has no deadline_s. The limit is 3600 s until this function is
 * called. */
void rl_queue_set_default_time_limit(rl_queue *queue, int64_t time_limit_s);

/* If refreshes_ceilings is true, the queue submits a ceilings job when a device's driver or clocks have changed since its
 * ceilings were measured. Default: false. */
void rl_queue_set_refresh_ceilings(rl_queue *queue, bool refreshes_ceilings);

/* Stores a new job and sets *id. key: the Idempotency-Key, or NULL; then body_sha256 may be NULL. If a job with this key and body
 * hash exists, stores nothing, sets *existing to true and *id to that job. Fills in spec->device if it is "". Fails with RL_INPUT
 * at /device (the device is unknown or unusable, or the job needs a GPU and none is usable), with RL_HTTP 422 (a job has the key
 * but another body), 429 (the queue is full) or 503 (the daemon is stopping), and with RL_STORAGE (RL_STORAGE_FULL: the disk is
 * full; RL_STORAGE_LOCKED). */
int rl_queue_submit_job(rl_queue *queue, rl_job_spec *spec, const char *key, const char *body_sha256, int64_t *id, bool *existing,
                        rl_error *err);
/* Checks the job's device, engines and variants as rl_queue_submit_job does, but stores nothing. Fills in spec->device. */
int rl_queue_check_job(rl_queue *queue, rl_job_spec *spec, rl_error *err);
/* Cancels a queued or running job. Afterwards rl_queue_should_cancel returns true for the job, and further records of its worker
 * are discarded. Fails with RL_HTTP 404 when there is no such job, and with 409 when the job has finished. */
int rl_queue_cancel_job(rl_queue *queue, int64_t id, rl_error *err);

/* --- for the thread that serves a device ------------------------------------------------------------------------------ */

/* Waits at most timeout_ms for the next pass of a device: the next pass of the job that is running on the device, or, if no job
 * is running on it, the next pass of the device's oldest queued job, which then starts. Returns 1 and fills *claim, which the
 * caller clears; returns 0 after timeout_ms or when the queue stops. */
int rl_queue_claim_pass(rl_queue *queue, const char *device, int timeout_ms, rl_claim *claim, rl_error *err);
/* Returns the id of the device's running job; 0 if no job is running. Never blocks. */
int64_t rl_queue_job_on_device(rl_queue *queue, const char *device);
/* Returns whether the job is running on a device and was cancelled. Never blocks. */
bool rl_queue_should_cancel(rl_queue *queue, int64_t job_id);
/* Stores the progress as an event of the job, unless the job's last progress event is less than 250 ms old. Ignores errors of the
 * store. */
void rl_queue_publish_progress(rl_queue *queue, int64_t job_id, int64_t run_id, const rl_progress *progress);
/* Stores the log of the claim's run. The log stays even if the pass fails. */
int rl_queue_store_log(rl_queue *queue, const rl_claim *claim, const char *text, rl_error *err);
/* Takes the first RL_SLICE_ROWS activity rows, or all if there are fewer, out of *records and stores them in the database
 * (rl_store_append_activity). The caller repeats the call until no row is left. If the job was cancelled, removes all activity
 * rows from *records without storing them. */
int rl_queue_append_activity(rl_queue *queue, const rl_claim *claim, rl_activity_appender *appender, rl_records *records,
                             rl_error *err);
/* Deletes the activity rows of a pass that is not committed (rl_store_discard_activity), until *stop becomes true. */
int rl_queue_discard_activity(rl_queue *queue, const rl_claim *claim, const atomic_bool *stop, rl_error *err);
/* Stores all records of a pass and completes the pass; completes the job if this was its last pass (rl_store_pass_commit). */
int rl_queue_commit_pass(rl_queue *queue, const rl_claim *claim, const rl_records *records, rl_error *err);
/* Records that the results of the claim's pass can't be stored now, and the reason. Until the pass's outcome is stored, clients
 * see the job in the state `storing`. */
void rl_queue_report_unstored_results(rl_queue *queue, const rl_claim *claim, const rl_error *reason);
/* Fails the job with the problem that the worker reported. */
int rl_queue_fail_job(rl_queue *queue, const rl_claim *claim, const rl_error *problem, rl_error *err);
/* Stores the records and sets the pass to `unavailable` with the reason, such as missing privileges. The job continues with its
 * next pass. */
int rl_queue_commit_unavailable_pass(rl_queue *queue, const rl_claim *claim, const rl_records *records, const char *reason,
                                     rl_error *err);
/* Records that the worker died or hung during the pass. The first time, the pass is executed again; the second time, the job
 * fails. */
int rl_queue_record_worker_crash(rl_queue *queue, const rl_claim *claim, const char *reason, rl_error *err);
/* Removes a cancelled job from its device. Called after the worker has stopped the pass. */
int rl_queue_end_cancelled_job(rl_queue *queue, const rl_claim *claim, rl_error *err);
/* Makes rl_queue_claim_pass return 0 from now on. The threads of the devices, which are stopped separately, end their passes and
 * call rl_queue_interrupt_job. */
void rl_queue_stop(rl_queue *queue);
/* Sets the claim's job to `interrupted`, so that the next start of the daemon queues it again. */
int rl_queue_interrupt_job(rl_queue *queue, const rl_claim *claim, rl_error *err);

/* Sets the function that the queue calls after it has stored an event of a job; NULL: none. The queue does not hold its mutex
 * during the call. When rl_queue_set_listener returns, the previous function is not running. */
void rl_queue_set_listener(rl_queue *queue, rl_listener_function *on_event, void *context);

/* Returns the statistics of jobs since the program started; the queue owns them. */
const struct rl_job_statistics *rl_queue_statistics(const rl_queue *queue);

/* Fails if results of a job can't be stored now. The error is the reason that rl_queue_report_unstored_results has recorded. */
int rl_queue_check_results_are_stored(rl_queue *queue, rl_error *err);

/* Counts the queued and the running jobs. */
int rl_queue_count_jobs(rl_queue *queue, rl_job_counts *counts, rl_error *err);

RL_DEFINE_CLEANUP(rl_queue_cleanup, rl_queue *, rl_queue_close, NULL)
#endif
