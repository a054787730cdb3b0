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
  RL_ATTEMPT_PENDING /* not finished */
} rl_attempt_result;

typedef struct rl_attempt {
  rl_queue *jobs;
  const rl_claim *claim;
  rl_worker *worker;
  const atomic_bool *stopping;
  rl_records records;     /* received; the caller clears them */
  size_t log_bytes;       /* received in all LOG frames, bounded because each is stored at once */
  int64_t cancel_sent_ns; /* monotonic; 0: not sent */
  rl_error why;           /* reason of every result except DONE */
} rl_attempt;

/* Returns STOPPED, LATE, CANCELLED or IGNORED_CANCEL when one of them ends the attempt, else PENDING. Sends CANCEL to the worker
 * when the job is cancelled. */
rl_attempt_result rl_attempt_interruption(rl_attempt *attempt);
/* Waits for the HELLO of a worker that was just started. Returns PENDING when the worker can serve. */
rl_attempt_result rl_attempt_handshake(rl_attempt *attempt);
/* Sends the request and reads frames until the attempt ends. Never returns PENDING. */
rl_attempt_result rl_attempt_run(rl_attempt *attempt);

#endif
