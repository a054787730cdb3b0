/* A worker's resident state and the passes over it. An instance stays open between requests with the same workload and parameters
 * (LRU of a few), so data set, handles and compiled kernels stay warm. */
#ifndef RL_WORKER_SESSION_H
#define RL_WORKER_SESSION_H

#include "jobs/records.h"
#include "worker/profiler.h"
#include "workers/wire.h"
#include "workload.h"

typedef struct rl_session {
  rl_device *device;
  rl_profiler *profiler;     /* NULL in the clean role */
  rl_instance *instance;     /* of the current request */
  const rl_workload *workload;
  const rl_engine *engine;
  const void *params;        /* the workload's struct */
  rl_observer observer;      /* cancellation and progress, to hand to rl_device_ops.run */
  rl_records *records;       /* where the pass puts what it finds */
  void (*progress)(struct rl_session *session, const rl_progress *progress);
  void *context;
} rl_session;

typedef enum rl_outcome { RL_OUTCOME_DONE, RL_OUTCOME_UNAVAILABLE, RL_OUTCOME_FAILED, RL_OUTCOME_CANCELLED } rl_outcome;

typedef struct rl_pass_def {
  const char *name; /* rl_pass_names */
  /* On UNAVAILABLE and FAILED err says why. */
  rl_outcome (*run)(rl_session *session, rl_error *err);
} rl_pass_def;
extern const rl_pass_def rl_pass_defs[RL_PASSES]; /* pass_timing.c pass_activity.c pass_counters.c */

#endif
