/* A job: what a client asked for after validation, its states, and the pass that a worker does next. */
#ifndef RL_MODEL_JOB_H
#define RL_MODEL_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/sha256.h"
#include "model/profile.h"
#include "model/records.h"

enum { RL_RUNS_MAX = 8, RL_PARAMS_SIZE = 8192, RL_SPEC_SIZE = 12288 };

typedef struct rl_run_spec {
  char workload[32];           /* rl_workload.name */
  char variant[32];            /* what sets this run apart in its job: the precision, the kernel's variant */
  char params[RL_PARAMS_SIZE]; /* canonical JSON of the workload's parameters, with all defaults filled in */
  /* The parameters that differ from their defaults, keys sorted: equal text means alike runs, also when a later version has more
   * parameters. "": params. */
  char nondefault_params[RL_PARAMS_SIZE];
} rl_run_spec;

typedef struct rl_job_spec {
  char kind[16];                 /* "train" "kernel" "ceilings" "source" */
  char device[16];               /* "" on input: the first usable GPU, else the CPU; filled in by rl_queue_submit */
  uint32_t passes;               /* bit i: rl_pass i */
  char profile[RL_PROFILE_SIZE]; /* JSON of an rl_profile, for the counters pass; "" without that pass */
  int64_t deadline_s;            /* of the whole job; 0: the configured one */
  int run_count;
  rl_run_spec runs[RL_RUNS_MAX];
  char request[RL_SPEC_SIZE]; /* canonical JSON of the request with every default filled in */
  bool needs_gpu;
  bool automatic;       /* the daemon asks for it itself: after everything that clients ask for */
  int64_t buffer_bytes; /* of the device's memory that the client asks for */
  char *source; /* JSON text that the runs need besides, too large for them; kept once under its hash; malloc'ed; NULL: none */
  char source_sha256[RL_SHA256_SIZE];
} rl_job_spec;

void rl_job_spec_clear(rl_job_spec *spec);

typedef enum rl_job_state {
  RL_JOB_QUEUED,
  RL_JOB_RUNNING,
  RL_JOB_COMPLETED,
  RL_JOB_FAILED,
  RL_JOB_CANCELLED,
  RL_JOB_INTERRUPTED,
  RL_JOB_STATES
} rl_job_state;
extern const char *const rl_job_state_names[]; /* "queued" ..., NULL */
bool rl_job_is_final(rl_job_state state);

/* What the store knows of a job's life; ns of the wall clock, 0: not yet. */
typedef struct rl_job_status {
  char kind[16];
  rl_job_state state;
  int64_t created_ns, started_ns, finished_ns;
} rl_job_status;

typedef struct rl_job_counts {
  int64_t queued, running;
} rl_job_counts; /* as the store has them */

typedef struct rl_claim { /* one pass of one run to do next */
  int64_t job_id, run_id, pass_id;
  rl_run_spec run;
  rl_pass pass;
  char profile[RL_PROFILE_SIZE]; /* the job's; "": none */
  int64_t deadline_ns;           /* rl_monotonic_ns */
  char *source;                  /* text that the run's parameters name by its hash; malloc'ed; NULL: none */
} rl_claim;

void rl_claim_clear(rl_claim *claim); /* frees what it holds */

#endif
