/* Interface between service.c and the passes: the context of a request, and functions that run the iteration, report progress,
 * and add measurements. */
#ifndef RL_WORKER_PASS_H
#define RL_WORKER_PASS_H

#include "model/records.h"
#include "wire/wire.h"
#include "worker/profiler.h"
#include "worker/sensors.h"
#include "workload.h"

typedef struct rl_pass_context { /* the context of one request */
  rl_device *device;
  rl_profiler *profiler; /* NULL: none; no_profiler_reason says why (unprofiled role, or not available) */
  rl_instance *instance; /* instance of the current request */
  const rl_workload *workload;
  const rl_engine *engine;
  const void *params;                 /* parameters, in the struct that the workload defines */
  rl_profile_options profile_options; /* options of the counters pass */
  rl_observer observer;               /* cancellation and progress, for rl_device_ops.run */
  rl_records *records;                /* results of the pass */
  void (*progress)(struct rl_pass_context *pass, const rl_progress *progress);
  void *context;                         /* the rl_service that serves the request */
  rl_executable *timestamped_executable; /* activity pass: the iteration with phase timestamps; else NULL */
  const char *no_profiler_reason;
  rl_sensors *sensors;
  rl_progress current_progress;             /* sent to the daemon at most every 200 ms */
  double iterations_total, iterations_done; /* numbers of all and of ended iterations, for the remaining time */
  int64_t started_ns, phase_started_ns;
} rl_pass_context;

typedef enum rl_outcome { RL_OUTCOME_DONE, RL_OUTCOME_UNAVAILABLE, RL_OUTCOME_FAILED, RL_OUTCOME_CANCELLED } rl_outcome;

/* Returns DONE for rc 0; for −1 CANCELLED or FAILED, according to err. */
rl_outcome rl_outcome_of_error(int rc, const rl_error *err);
/* Reports that a phase (see rl_progress) of iteration `epoch` of `epochs` begins. epoch −1: the phase belongs to no iteration.
 * epochs −1: unknown. */
void rl_pass_enter_phase(rl_pass_context *pass, const char *phase, int64_t epoch, int64_t epochs);
/* Reports that an iteration has ended. */
void rl_pass_iteration_done(rl_pass_context *pass);

typedef struct rl_named_value {
  const char *name;
  double value;
  const char *reason; /* stored only if value is NAN */
} rl_named_value;

int rl_pass_add_measurement(rl_pass_context *pass, const char *name, double value, const char *reason, rl_error *err);
int rl_pass_add_measurements(rl_pass_context *pass, const rl_named_value *values, size_t count, rl_error *err);

/* Run the instance's iteration, or its evaluation. The executable (on CUDA a graph) is created only when it is first used,
 * because the counters pass needs no executable, and CUPTI uses less memory per launch in a process without graphs. */
int rl_pass_run_iteration(rl_pass_context *pass, const rl_observer *observer, rl_elapsed *elapsed, rl_error *err);
int rl_pass_run_evaluation(rl_pass_context *pass, rl_elapsed *elapsed, rl_error *err);

/* Returns the memory that this instance uses now and its peaks since it was opened, in bytes by purpose. */
rl_memory_usage rl_pass_memory_usage(const rl_pass_context *pass);
/* Returns the device memory that the driver, kernels and libraries allocated outside rl_device_ops.allocate, in bytes; NAN: not
 * measured. */
double rl_pass_cuda_context_bytes(const rl_pass_context *pass);
/* Returns the reason for which rl_pass_cuda_context_bytes is NAN although the sensors measure device memory; "": there is none.
 */
const char *rl_pass_no_context_bytes_reason(const rl_pass_context *pass);
/* Returns the device memory in use before this process opened the device, in bytes; NAN: not measured. */
double rl_pass_used_bytes_before_open(const rl_pass_context *pass);

/* Adds measurements of memory: peaks by purpose, and totals of the device and the process. */
int rl_pass_measure_memory(rl_pass_context *pass, rl_error *err);
/* Adds the measurement launches_per_step, by running the step without a graph. Restarts the iteration. */
int rl_pass_measure_launches_per_step(rl_pass_context *pass, rl_error *err);
/* Execute the timing pass: one function for each rl_timing_mode. */
int rl_time_epochs(rl_pass_context *pass, rl_error *err);
int rl_time_launches(rl_pass_context *pass, rl_error *err);
int rl_time_rates(rl_pass_context *pass, rl_error *err);

/* Execute a pass. After the outcomes UNAVAILABLE and FAILED, err has the reason. */
rl_outcome rl_timing_run(rl_pass_context *pass, rl_error *err);
rl_outcome rl_activity_run(rl_pass_context *pass, rl_error *err);
rl_outcome rl_counters_run(rl_pass_context *pass, rl_error *err);

#endif
