/* Functions that the passes share: progress, measurements and memory. */
#ifndef RL_WORKER_PASS_H
#define RL_WORKER_PASS_H

#include "worker/service.h"

/* Returns DONE for rc 0; for −1 CANCELLED or FAILED, according to err. */
rl_outcome rl_pass_outcome(int rc, const rl_error *err);
/* Reports that a phase ("prepare" "warmup" "epoch" "samples" "trace" "counters" "evaluate") of iteration `epoch` of `epochs`
 * begins; −1 where the phase has no iterations. */
void rl_pass_enter(rl_pass_context *pass, const char *phase, int64_t epoch, int64_t epochs);
/* Adds one to iterations_done. */
void rl_pass_iteration_done(rl_pass_context *pass);

/* Adds a measurement; reason is stored only if value is NAN. */
int rl_pass_measure(rl_pass_context *pass, const char *name, double value, const char *reason, rl_error *err);

/* Measures memory: peaks by purpose, and totals of the device and the process. */
int rl_pass_measure_memory(rl_pass_context *pass, rl_error *err);
/* Measures the launches of one step by launching the step without a graph. Restarts the iteration. */
int rl_pass_measure_step(rl_pass_context *pass, rl_error *err);
/* The timing pass for each kind of iteration: epochs, single launches, rates of the device. */
int rl_time_epochs(rl_pass_context *pass, rl_error *err);
int rl_time_launches(rl_pass_context *pass, rl_error *err);
int rl_time_rates(rl_pass_context *pass, rl_error *err);

/* The passes of rl_pass_defs. */
rl_outcome rl_timing_run(rl_pass_context *pass, rl_error *err);
rl_outcome rl_activity_run(rl_pass_context *pass, rl_error *err);
rl_outcome rl_counters_run(rl_pass_context *pass, rl_error *err);

#endif
