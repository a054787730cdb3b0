/* What the passes share: where they stand, and a way through one iteration. */
#ifndef RL_WORKER_PASS_H
#define RL_WORKER_PASS_H

#include "worker/session.h"

/* DONE for 0; for -1 CANCELLED or FAILED, as err says. */
rl_outcome rl_pass_outcome(int rc, const rl_error *err);
/* Start a phase ("prepare" "warmup" "epoch" "samples" "trace" "counters" "evaluate") of iteration `epoch` of `epochs`; -1 where
 * there is no such thing. */
void rl_pass_enter(rl_session *session, const char *phase, int64_t epoch, int64_t epochs);
/* One unit of session->units is done. */
void rl_pass_unit_done(rl_session *session);

/* Add a measurement; reason is kept only where value is NAN. */
int rl_pass_measure(rl_session *session, const char *name, double value, const char *reason, rl_error *err);

/* Peaks by purpose, and what the device and the process hold. */
int rl_pass_measure_memory(rl_session *session, rl_error *err);
/* Launches of one step, counted where none is hidden in a graph. The iteration begins anew: after its last step there is no
 * other. */
int rl_pass_measure_step(rl_session *session, rl_error *err);
/* The timing pass of each kind of iteration. */
int rl_time_epochs(rl_session *session, rl_error *err);
int rl_time_launches(rl_session *session, rl_error *err);
int rl_time_rates(rl_session *session, rl_error *err);

/* The passes, for rl_pass_defs. */
rl_outcome rl_timing_run(rl_session *session, rl_error *err);
rl_outcome rl_activity_run(rl_session *session, rl_error *err);
rl_outcome rl_counters_run(rl_session *session, rl_error *err);

#endif
