/* Types that the request parser, the queue, the store and the supervisor share: a validated job (rl_job_spec), the states of
 * jobs, and a claim, the pass that a device executes. */
#ifndef RL_MODEL_JOB_H
#define RL_MODEL_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/sha256.h"
#include "model/profile.h"
#include "model/records.h"

enum { RL_RUNS_MAX = 8, RL_PARAMS_SIZE = 8192, RL_REQUEST_SIZE = 12288, RL_WORKER_BUILD_SIZE = 65 };

typedef struct rl_run_spec {
  char workload[32];           /* rl_workload.name */
  char variant[32];            /* distinguishes the run from the job's other runs: a precision, or the variant of a kernel */
  char params[RL_PARAMS_SIZE]; /* canonical JSON of the workload's parameters, with all defaults filled in */
  /* JSON of the parameters that differ from their defaults, with sorted keys. Runs with equal text are repetitions of each other,
   * even if a newer version of rooflined, which has more parameters, has executed one of them. "": the store uses params
   * instead. */
  char nondefault_params[RL_PARAMS_SIZE];
} rl_run_spec;

typedef struct rl_job_spec {
  char kind[16];                 /* "train" "kernel" "layer" "ceilings" "source" "import" */
  char device[16];               /* "": rl_queue_submit_job fills in the first usable GPU, else the CPU */
  uint32_t passes;               /* bit i: rl_pass i */
  char profile[RL_PROFILE_SIZE]; /* JSON of the counters pass's rl_profile_options; "": the job has no counters pass */
  int64_t time_limit_s;          /* from the job's start to its end, "deadline_s" in JSON; 0: the configured limit */
  int run_count;
  rl_run_spec runs[RL_RUNS_MAX];
  char request[RL_REQUEST_SIZE]; /* canonical JSON of the request with every default filled in */
  bool needs_gpu;
  /* Build whose worker programs run the job: a name in the setting `builds`; "": the daemon's own. */
  char worker_build[RL_WORKER_BUILD_SIZE];
  bool automatic;                     /* the daemon itself has submitted the job, which runs after all queued jobs of clients */
  int64_t buffer_bytes;               /* device memory for the arguments of the kernel that the client posted */
  char *source_json;                  /* JSON text of the posted kernel, malloc'ed; NULL: none */
  char source_sha256[RL_SHA256_SIZE]; /* hash of source_json */
} rl_job_spec;

void rl_job_spec_clear(rl_job_spec *spec); /* frees spec->source_json */

typedef enum rl_job_state {
  RL_JOB_QUEUED,
  RL_JOB_RUNNING,
  RL_JOB_COMPLETED,
  RL_JOB_FAILED,
  RL_JOB_CANCELLED,
  RL_JOB_INTERRUPTED,
  RL_JOB_STATE_COUNT
} rl_job_state;
extern const char *const rl_job_state_names[]; /* "queued" "running" ..., NULL-terminated */
/* Returns whether a job in this state has ended. An interrupted job has not: it runs again. */
bool rl_job_is_final(rl_job_state state);

/* Kind, state and times of a job. Times are in ns since 1970; 0: the job has not started or finished yet. */
typedef struct rl_job_status {
  char kind[16];
  rl_job_state state;
  int64_t created_ns, started_ns, finished_ns;
  int64_t events; /* number of events stored so far, which is also the number of the last event */
} rl_job_status;

typedef struct rl_job_counts {
  int64_t queued, running;
} rl_job_counts; /* numbers of jobs in these states */

typedef struct rl_claim { /* a pass of a run that a device executes; the state of the pass in the store is `running` */
  int64_t job_id, run_id, pass_id;
  rl_run_spec run;
  rl_pass pass;
  char profile[RL_PROFILE_SIZE]; /* rl_job_spec.profile of the job */
  int64_t time_limit_s;          /* rl_job_spec.time_limit_s of the job */
  int64_t deadline_ns;           /* time of rl_monotonic_ns at which the job must have ended; 0: the queue has not set it yet */
  bool fresh_worker;             /* the job's passes run in worker processes that no other job has used */
  char worker_build[RL_WORKER_BUILD_SIZE]; /* rl_job_spec.worker_build of the job */
  char *source_json; /* JSON text of the posted kernel, malloc'ed; run.params contains its hash. NULL: none */
} rl_claim;

void rl_claim_clear(rl_claim *claim); /* frees claim->source_json */

#endif
