/* Implements job.h. */
#include "model/job.h"

#include <stdlib.h>

const char *const rl_job_state_names[] = {"queued", "running", "completed", "failed", "cancelled", "interrupted", NULL};

bool rl_job_is_final(rl_job_state state) {
  return state == RL_JOB_COMPLETED || state == RL_JOB_FAILED || state == RL_JOB_CANCELLED;
}

void rl_job_spec_clear(rl_job_spec *spec) {
  free(spec->source_json);
  spec->source_json = NULL;
}

void rl_claim_clear(rl_claim *claim) {
  free(claim->source_json);
  claim->source_json = NULL;
}
