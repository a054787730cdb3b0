/* A worker's resident state and the passes over it. An instance stays open between requests with the same workload and parameters
 * (LRU of a few), so data set, handles and compiled kernels stay warm. One thread, the device's. */
#ifndef RL_WORKER_SESSION_H
#define RL_WORKER_SESSION_H

#include "base/cleanup.h"
#include "model/records.h"
#include "worker/profiler.h"
#include "worker/sensors.h"
#include "wire/wire.h"
#include "workload.h"

typedef struct rl_session {
  rl_device *device;
  rl_profiler *profiler; /* NULL in the clean role, and where it can't be had: profiler_reason */
  rl_instance *instance; /* of the current request */
  const rl_workload *workload;
  const rl_engine *engine;
  const void *params;   /* the workload's struct */
  rl_profile profile;   /* for the counters pass */
  rl_observer observer; /* cancellation and progress, to hand to rl_device_ops.run */
  rl_records *records;  /* where the pass puts what it finds */
  void (*progress)(struct rl_session *session, const rl_progress *progress);
  void *context;
  rl_plan *stamped; /* the iteration with marks, while the activity pass has them made; else NULL */
  const char *profiler_reason;
  rl_sensors *sensors;
  rl_progress position;     /* where the pass stands: see pass.h */
  double units, units_done; /* of the pass, for the ETA; a unit is an iteration */
  int64_t started_ns, entered_ns;
} rl_session;

typedef enum rl_outcome { RL_OUTCOME_DONE, RL_OUTCOME_UNAVAILABLE, RL_OUTCOME_FAILED, RL_OUTCOME_CANCELLED } rl_outcome;

typedef struct rl_pass_def {
  const char *name; /* rl_pass_names */
  /* On UNAVAILABLE and FAILED err says why. */
  rl_outcome (*run)(rl_session *session, rl_error *err);
} rl_pass_def;
extern const rl_pass_def rl_pass_defs[RL_PASSES]; /* pass_timing.c pass_activity.c pass_counters.c */

/* The instance's iteration, or its evaluation where it has one, by a plan that is made when it is first asked for: a pass that
 * only counts launches makes no graph, and without one CUPTI keeps less of every launch. */
int rl_session_iterate(rl_session *session, const rl_observer *observer, rl_elapsed *elapsed, rl_error *err);
int rl_session_evaluate(rl_session *session, rl_elapsed *elapsed, rl_error *err);

/* The instance's memory since it was opened, apart from that of others that are open: peaks by purpose. */
rl_memory rl_session_memory(const rl_session *session);
/* Bytes of the device's memory that the driver, kernels and libraries took beside our allocator; NAN when not measured. */
double rl_session_context_bytes(const rl_session *session);
/* Bytes in use on the device before this program opened it; NAN when not measured. */
double rl_session_before_bytes(const rl_session *session);

typedef struct rl_service rl_service;
typedef struct rl_service_options { /* none of it is owned; all of it must outlive the service */
  rl_device *device;
  rl_profiler *profiler; /* NULL: profiler_reason says why */
  const char *profiler_reason;
  rl_sensors *sensors;
  const char *role;                 /* "clean" "profiled" "any": which passes it does */
  double before_bytes;              /* in use on the device before it was opened, NAN when not measured */
  bool (*cancelled)(void *context); /* from the device's thread */
  /* At most one each request, before any progress; then progress, at most five a second. */
  void (*opened)(void *context, const rl_run_facts *facts);
  void (*progress)(void *context, const rl_progress *progress);
  void *context;
} rl_service_options;

/* -1 (RL_SYS) when memory is out. */
int rl_service_open(const rl_service_options *options, rl_service **service, rl_error *err);
/* Do one request; what it yields, facts included, is added to records. On FAILED and UNAVAILABLE err says why. */
rl_outcome rl_service_serve(rl_service *service, const rl_request *request, rl_records *records, rl_error *err);
/* Let go of what is kept of the device, beside memory, for the next request: another process is to work there. */
void rl_service_release(rl_service *service);
/* Whether the device still does what it is told; when not, this process can serve no more. */
bool rl_service_healthy(rl_service *service);
void rl_service_close(rl_service *service); /* closes the open instances; NULL is allowed */

RL_DEFINE_CLEANUP(rl_service_cleanup, rl_service *, rl_service_close, NULL)
#endif
