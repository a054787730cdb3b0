/* What the warps of each instruction wait for: CUPTI's PC samples. One thread; the context is current. Errors: RL_CUPTI. */
#ifndef RL_CUPTI_SAMPLING_H
#define RL_CUPTI_SAMPLING_H

#include <stdbool.h>

#include "worker/cupti/inside.h"

typedef struct rl_sampling rl_sampling;

/* CUPTI tells instructions only of modules that were loaded while PC sampling was enabled; idle, it costs nothing, but counters
 * can't be read meanwhile. So it is enabled from the start and between. Twice is as good as once. */
int rl_sampling_enable(CUcontext context, rl_error *err);
void rl_sampling_disable(CUcontext context);

/* With sampling enabled: one sample of each SM every 2^period cycles. Metrics are CUPTI's names,
 * "smsp__pcsamp_warps_issue_stalled_*", and RL_SAMPLES for all samples of an instruction. buffer_bytes: of the hardware, for what
 * is taken between begin and end; the first begin takes the longer the larger it is. */
#define RL_SAMPLES "smsp__pcsamp_sample_count"
int rl_sampling_open(CUcontext context, uint32_t period, size_t buffer_bytes, rl_sampling **sampling, rl_error *err);
bool rl_sampling_fits(const rl_sampling *sampling, uint32_t period, size_t buffer_bytes); /* opened so, and ready */
bool rl_sampling_is_ready(const rl_sampling *sampling);                                   /* not stopped; NULL is not ready */
int rl_sampling_begin(rl_sampling *sampling, rl_error *err);
/* The device must be idle; hands each count of each instruction to the sink. */
int rl_sampling_end(rl_sampling *sampling, const rl_code_sink *sink, rl_error *err);
/* Every name that a count can have, the sampling's; returns how many. */
size_t rl_sampling_reasons(const rl_sampling *sampling, const char *const **names);
void rl_sampling_stop(rl_sampling *sampling);  /* no more samples: sampling is disabled then; names stay */
void rl_sampling_close(rl_sampling *sampling); /* NULL is allowed, as above */

#endif
