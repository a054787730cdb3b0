/* The counters pass: resets the instance and has the profiler count the kernels of one step. */
#include <errno.h>
#include <stdio.h>

#include "worker/pass.h"

rl_outcome rl_counters_run(rl_session *session, rl_error *err) {
  char reason[RL_REASON_SIZE] = "";
  if (!session->profiler) {
    rl_fail(err, RL_SYS, ENOTSUP, "%s", session->profiler_reason);
    return RL_OUTCOME_UNAVAILABLE;
  }
  rl_pass_enter(session, "counters", -1, -1);
  if (session->instance->ops->reset(session->instance, err) < 0) return rl_pass_outcome(-1, err);
  int rc = session->profiler->ops->count(session->profiler, session->instance, &session->profile, &session->observer,
                                         session->records, reason, err);
  if (rc <= 0) return rl_pass_outcome(rc, err);
  rl_fail(err, RL_SYS, ENOTSUP, "%s", reason);
  return RL_OUTCOME_UNAVAILABLE;
}
