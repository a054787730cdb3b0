/* The counters pass: resets the instance and collects the hardware counters of one step's kernels through the profiler. */
#include <errno.h>
#include <stdio.h>

#include "worker/pass.h"

rl_outcome rl_counters_run(rl_pass_context *pass, rl_error *err) {
  char reason[RL_REASON_SIZE] = "";
  if (!pass->profiler) {
    rl_fail(err, RL_ERRNO, ENOTSUP, "%s", pass->no_profiler_reason);
    return RL_OUTCOME_UNAVAILABLE;
  }
  rl_pass_enter_phase(pass, "counters", -1, -1);
  if (pass->instance->ops->reset(pass->instance, err) < 0) return rl_outcome_of_error(-1, err);
  int rc = pass->profiler->ops->collect_counters(pass->profiler, pass->instance, &pass->profile_options, &pass->observer,
                                                 pass->records, reason, err);
  if (rc <= 0) return rl_outcome_of_error(rc, err);
  rl_fail(err, RL_ERRNO, ENOTSUP, "%s", reason);
  return RL_OUTCOME_UNAVAILABLE;
}
