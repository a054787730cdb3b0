/* An attempt is one execution of a pass by a worker. The device runner's thread runs an attempt: it exchanges frames
 * (wire/wire.h) with the worker, from the worker's HELLO to the last frame of the pass, and collects the results. An attempt ends
 * early when the daemon stops, the job is cancelled, or the job's deadline passes. */
#ifndef RL_SUPERVISOR_ATTEMPT_H
#define RL_SUPERVISOR_ATTEMPT_H

#include <stdatomic.h>

#include "queue/queue.h"
#include "model/records.h"
#include "supervisor/worker.h"

enum {
  RL_POLL_INTERVAL_MS = 100, /* interval between checks for a cancellation, a stop of the daemon, and a deadline */
  /* Maximum time from a worker's start to its HELLO. Creating a CUDA context takes seconds even on an idle machine. */
  RL_HELLO_WAIT_MS = 60000
};

/* The result of an attempt. */
typedef enum rl_attempt_result {
  RL_ATTEMPT_DONE,              /* the worker sent DONE: all results were received */
  RL_ATTEMPT_UNAVAILABLE,       /* the worker sent UNAVAILABLE: this pass can't be measured here */
  RL_ATTEMPT_FAILED,            /* the worker sent FAILED: the job fails */
  RL_ATTEMPT_CANCELLED,         /* the job was cancelled, and the worker has stopped the pass or has no process */
  RL_ATTEMPT_IGNORED_CANCEL,    /* the job was cancelled, and the worker did not answer CANCEL */
  RL_ATTEMPT_DEADLINE_EXCEEDED, /* the job's time limit has passed */
  RL_ATTEMPT_STOPPED,           /* the daemon is stopping */
  RL_ATTEMPT_DIED,              /* the worker exited, was silent, or broke the protocol */
  RL_ATTEMPT_CONTINUE           /* the attempt has not ended */
} rl_attempt_result;

typedef struct rl_attempt {
  rl_queue *jobs;
  const rl_claim *claim;
  rl_worker *worker;
  const atomic_bool *stopping;
  rl_records records;             /* records received from the worker; activity rows are removed when they are stored */
  rl_activity_appender *appender; /* writes activity rows to the database; NULL: no row was stored */
  char *log;                      /* part of the run's log that is not stored yet; NULL: none */
  int64_t waiting_bytes;  /* size of the records in memory that can't be stored now; set by rl_attempt_set_waiting_bytes */
  int64_t next_store_ns;  /* rl_monotonic_ns of the next try to store activity rows; 0: no try has failed */
  size_t log_bytes;       /* size of all LOG frames of this pass; at most RL_WIRE_MAX_MESSAGE_BYTES */
  int64_t unread_ns;      /* how long the daemon did not read the worker's pipe; the job's deadline is postponed by this time */
  rl_heartbeat heartbeat; /* the last HEARTBEAT frame */
  int64_t cancel_sent_ns; /* rl_monotonic_ns at which CANCEL was sent; 0: not sent */
  rl_error error;         /* reason of every result except DONE */
} rl_attempt;

/* Returns STOPPED, DEADLINE_EXCEEDED, CANCELLED or IGNORED_CANCEL if the attempt must end for that reason, else CONTINUE. Sends
 * CANCEL to the worker when the job is cancelled. */
rl_attempt_result rl_attempt_check_interruption(rl_attempt *attempt);
/* Waits for the worker's HELLO until wait_ms after the worker's start. If that time has already passed, waits for
 * RL_POLL_INTERVAL_MS. Returns CONTINUE when the worker can execute passes, else the result that ends the attempt. */
rl_attempt_result rl_attempt_handshake(rl_attempt *attempt, int wait_ms);
/* Checks a HELLO as rl_worker_check_hello does, and tells the queue which engines the device can't run, unless the worker runs
 * another build. */
int rl_attempt_accept_hello(rl_queue *jobs, rl_worker *worker, const rl_frame *frame, rl_error *err);
/* Sends the request and reads frames until the attempt ends. Never returns CONTINUE. */
rl_attempt_result rl_attempt_run(rl_attempt *attempt);
/* Stores attempt->log, frees it and sets it to NULL. Does nothing if it is NULL. Fails with RL_STORAGE; attempt->log is then
 * kept, and the call can be repeated. */
int rl_attempt_store_log(rl_attempt *attempt, rl_error *err);

/* Stores activity rows in slices and removes them from `records`, until at most max_left rows are left. If the job has ended,
 * removes all rows without storing them. Fails with RL_STORAGE; the remaining rows then stay in `records`, and the call can be
 * repeated. */
int rl_attempt_store_rows(rl_attempt *attempt, size_t max_left, rl_error *err);
/* Deletes all results that the worker has sent, in memory and in the database, so that the pass can be executed again. Returns
 * CONTINUE, or the result that ends the attempt. */
rl_attempt_result rl_attempt_discard_results(rl_attempt *attempt);
/* Deletes the activity rows that an earlier attempt at this pass has stored. Returns CONTINUE, or the result that ends the
 * attempt. */
rl_attempt_result rl_attempt_discard_rows(rl_attempt *attempt);
/* Sets attempt->waiting_bytes. Returns whether the sum of waiting_bytes over all devices exceeds 32 MiB. */
bool rl_attempt_set_waiting_bytes(rl_attempt *attempt, int64_t bytes);
/* Frees records, appender and log. */
void rl_attempt_clear(rl_attempt *attempt);

#endif
