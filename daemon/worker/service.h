/* Serves requests of the daemon in a worker: opens instances and executes passes on them. A few instances stay open (LRU), so
 * that the next request with the same workload and parameters finds data set, handles and compiled kernels ready. Everything here
 * runs on the device's thread. */
#ifndef RL_WORKER_SERVICE_H
#define RL_WORKER_SERVICE_H

#include "base/cleanup.h"
#include "model/records.h"
#include "worker/profiler.h"
#include "worker/sensors.h"
#include "wire/wire.h"
#include "workload.h"

typedef struct rl_pass_context { /* all that a pass reads and writes while it serves one request */
  rl_device *device;
  rl_profiler *profiler; /* NULL: profiler_reason says why (the clean role, or no profiler available) */
  rl_instance *instance; /* of the current request */
  const rl_workload *workload;
  const rl_engine *engine;
  const void *params;   /* the workload's struct */
  rl_profile profile;   /* for the counters pass */
  rl_observer observer; /* cancellation and progress, for rl_device_ops.run */
  rl_records *records;  /* results of the pass */
  void (*progress)(struct rl_pass_context *pass, const rl_progress *progress);
  void *context;             /* the rl_service */
  rl_plan *timestamped_plan; /* activity pass: the iteration with phase timestamps; else NULL */
  const char *profiler_reason;
  rl_sensors *sensors;
  rl_progress current_progress;             /* see rl_pass_enter */
  double iterations_total, iterations_done; /* of the pass, for the remaining time */
  int64_t started_ns, phase_started_ns;
} rl_pass_context;

typedef enum rl_outcome { RL_OUTCOME_DONE, RL_OUTCOME_UNAVAILABLE, RL_OUTCOME_FAILED, RL_OUTCOME_CANCELLED } rl_outcome;

typedef struct rl_pass_def {
  const char *name; /* rl_pass_names */
  /* Executes the pass. err has the reason of UNAVAILABLE and FAILED. */
  rl_outcome (*run)(rl_pass_context *pass, rl_error *err);
} rl_pass_def;
extern const rl_pass_def rl_pass_defs[RL_PASSES]; /* pass_timing.c pass_activity.c pass_counters.c */

/* Run the instance's iteration or evaluation. The plan (on CUDA a graph) is created at its first use: the counters pass needs no
 * plan, and CUPTI uses less memory per launch in a process without graphs. */
int rl_pass_iterate(rl_pass_context *pass, const rl_observer *observer, rl_elapsed *elapsed, rl_error *err);
int rl_pass_evaluate(rl_pass_context *pass, rl_elapsed *elapsed, rl_error *err);

/* Returns the memory of this instance: bytes now, and peaks since it was opened, by purpose. Excludes other open instances. */
rl_memory rl_pass_memory(const rl_pass_context *pass);
/* Returns the device memory that the driver, kernels and libraries allocated outside rl_device_ops.allocate, in bytes; NAN: not
 * measured. */
double rl_pass_cuda_context_bytes(const rl_pass_context *pass);
/* Returns the device memory in use before this process opened the device, in bytes; NAN: not measured. */
double rl_pass_bytes_before_open(const rl_pass_context *pass);

typedef struct rl_service rl_service;
typedef struct rl_service_options { /* borrowed; must outlive the service */
  rl_device *device;
  rl_profiler *profiler; /* NULL: profiler_reason says why */
  const char *profiler_reason;
  rl_sensors *sensors;
  const char *role;         /* passes that the worker executes: "clean" (timing), "profiled" (the others) or "any" */
  double bytes_before_open; /* device memory in use; NAN: not measured */
  bool (*cancelled)(void *context);
  /* Called once per request, when its instance is open. Then progress is called, at most five times per second. */
  void (*opened)(void *context, const rl_run_facts *facts);
  void (*progress)(void *context, const rl_progress *progress);
  void *context;
} rl_service_options;

/* Returns 0, or -1 with RL_SYS when memory is out. */
int rl_service_open(const rl_service_options *options, rl_service **service, rl_error *err);
/* Executes one request and adds its results, facts included, to records. err has the reason of FAILED and UNAVAILABLE. */
rl_outcome rl_service_serve(rl_service *service, const rl_request *request, rl_records *records, rl_error *err);
/* Releases reserved hardware counters, so that another process can use them. Instances stay open. */
void rl_service_release_profiler(rl_service *service);
/* Returns true when a simple operation on the device succeeds. When it fails, the process must exit. */
bool rl_service_device_works(rl_service *service);
void rl_service_close(rl_service *service); /* closes open instances; NULL: nothing */

RL_DEFINE_CLEANUP(rl_service_cleanup, rl_service *, rl_service_close, NULL)
#endif
