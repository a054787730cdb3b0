/* One attempt to execute a pass: the frames between the daemon and a worker, from HELLO to the final frame. It ends early when
 * the daemon stops, the job is cancelled, or its deadline passes. */
#ifndef RL_SUPERVISOR_ATTEMPT_H
#define RL_SUPERVISOR_ATTEMPT_H

#include <stdatomic.h>

#include "queue/queue.h"
#include "model/records.h"
#include "supervisor/worker.h"

enum { RL_TICK_MS = 100 }; /* longest delay before a cancellation, stop or deadline is noticed */

/* Result of an attempt. */
typedef enum rl_attempt_result {
  RL_ATTEMPT_DONE,
  RL_ATTEMPT_UNAVAILABLE,
  RL_ATTEMPT_FAILED,
  RL_ATTEMPT_CANCELLED,
  RL_ATTEMPT_IGNORED_CANCEL,
  RL_ATTEMPT_DEADLINE_EXCEEDED,
  RL_ATTEMPT_STOPPED,
  RL_ATTEMPT_DIED,
  RL_ATTEMPT_CONTINUE /* the attempt has not ended */
} rl_attempt_result;

typedef struct rl_attempt {
  rl_queue *jobs;
  const rl_claim *claim;
  rl_worker *worker;
  const atomic_bool *stopping;
  rl_records records;             /* received; of the activity rows those that are not stored yet */
  rl_activity_appender *appender; /* of the activity rows that are stored; NULL: there are none */
  char *log;                      /* the compiler's log that is not stored yet; NULL: none */
  int64_t waiting_bytes;          /* of records that can't be stored now; part of the sum over all devices */
  int64_t next_try_ns;            /* monotonic: when to try again to store rows; 0: no try has failed */
  size_t log_bytes;               /* received in all LOG frames, bounded because each is stored at once */
  int64_t paused_ns;              /* how long the pipe was not read; extends the job's deadline */
  rl_heartbeat heartbeat;         /* the last one */
  int64_t cancel_sent_ns;         /* monotonic; 0: not sent */
  rl_error error;                 /* reason of every result except DONE */
} rl_attempt;

/* Returns STOPPED, DEADLINE_EXCEEDED, CANCELLED or IGNORED_CANCEL when one of them ends the attempt, else CONTINUE. Sends CANCEL
 * to the worker when the job is cancelled. */
rl_attempt_result rl_attempt_interruption(rl_attempt *attempt);
/* Waits for the HELLO of a worker that was just started. Returns CONTINUE when the worker can serve. */
rl_attempt_result rl_attempt_handshake(rl_attempt *attempt);
/* Sends the request and reads frames until the attempt ends. Never returns CONTINUE. */
rl_attempt_result rl_attempt_run(rl_attempt *attempt);
/* Stores attempt->log unless it is NULL, which it then becomes. RL_STORAGE. */
int rl_attempt_store_log(rl_attempt *attempt, rl_error *err);

/* Stores activity rows in slices until at most max_left are left in records, and drops them there. Drops all of them if the job
 * has ended. RL_STORAGE: the rows stay in records, and the call can be repeated. */
int rl_attempt_store_rows(rl_attempt *attempt, size_t max_left, rl_error *err);
/* Deletes activity rows that an earlier attempt stored. Returns CONTINUE, or the result that ends the attempt. */
rl_attempt_result rl_attempt_discard_rows(rl_attempt *attempt);
/* Sets the size of the attempt's records that wait in memory because they can't be stored. Returns whether those of all devices
 * exceed 32 MB. */
bool rl_attempt_set_waiting(rl_attempt *attempt, int64_t bytes);
/* Frees records, appender and log. */
void rl_attempt_clear(rl_attempt *attempt);

#endif
