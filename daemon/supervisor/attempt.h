/* One attempt at a pass: what the daemon says to a worker and hears from it, from the hello to the answer. Ends early when the
 * lane stops, the job is cancelled or its deadline comes. */
#ifndef RL_SUPERVISOR_ATTEMPT_H
#define RL_SUPERVISOR_ATTEMPT_H

#include <stdatomic.h>

#include "queue/queue.h"
#include "model/records.h"
#include "supervisor/worker.h"

enum { RL_TICK_MS = 100 }; /* how late a cancel, a stop or a deadline is noticed at most */

/* How it went. All but the first four end the worker. */
typedef enum rl_answer {
  RL_ANSWER_DONE,
  RL_ANSWER_UNAVAILABLE,
  RL_ANSWER_FAILED,
  RL_ANSWER_CANCELLED,
  RL_ANSWER_IGNORED_CANCEL,
  RL_ANSWER_LATE,
  RL_ANSWER_STOPPED,
  RL_ANSWER_DIED,
  RL_ANSWER_NONE /* still at it */
} rl_answer;

typedef struct rl_attempt {
  rl_queue *jobs;
  const rl_claim *claim;
  rl_worker *worker;
  const atomic_bool *stopping;
  rl_records records;     /* the caller clears them */
  size_t log_bytes;       /* that came; each goes to the disk at once, so they are bounded together */
  int64_t cancel_sent_ns; /* 0: not yet */
  rl_error why;           /* of every answer but DONE */
} rl_attempt;

/* What happened outside the worker: a stop, the deadline, a cancel, of which the worker is told; else RL_ANSWER_NONE. */
rl_answer rl_attempt_interruption(rl_attempt *at);
/* Wait for the hello of the worker that was just started; RL_ANSWER_NONE when it is as it should be. */
rl_answer rl_attempt_meet(rl_attempt *at);
/* Ask a worker that runs, and hear it out: never RL_ANSWER_NONE. */
rl_answer rl_attempt_perform(rl_attempt *at);

#endif
