/* PC sampling: CUPTI samples the program counters of the SMs' warps and why they stall. One thread, one CUDA context per process.
 * Errors: RL_CUPTI.
 *
 * CUPTI attributes samples only to modules that were loaded while PC sampling was enabled, but while it is enabled neither
 * activity records nor counters can be collected. So PC sampling is enabled whenever nothing else is measured: from the creation
 * of the context on, except between pause and resume. PC sampling that is enabled but not started costs nothing. */
#ifndef RL_CUPTI_PC_SAMPLING_H
#define RL_CUPTI_PC_SAMPLING_H

#include <stdbool.h>

#include "worker/cupti/instruction_count.h"

/* Call from CUPTI's callback for a new context, before the context loads modules. */
void rl_pc_sampling_on_context_created(CUcontext context);
CUcontext rl_pc_sampling_context(void); /* the process's context; NULL before there is one */
/* Each pause needs a resume; the last resume enables PC sampling again. Modules loaded while paused have no samples. */
void rl_pc_sampling_pause(void);
void rl_pc_sampling_resume(void);
void rl_pc_sampling_enable_unless_paused(void);
int rl_pc_sampling_enable(rl_error *err); /* 0 when it is enabled already */

typedef struct rl_pc_sampling rl_pc_sampling; /* a configuration of PC sampling */

/* Metrics of the counts: CUPTI's "smsp__pcsamp_warps_issue_stalled_*", and this one for all samples of an instruction. */
#define RL_PCSAMP_SAMPLE_COUNT "smsp__pcsamp_sample_count"

/* Configures PC sampling, which must be enabled: one sample per SM every 2^period cycles. buffer_bytes: size of the hardware
 * buffer, which must hold the samples between start and stop; a larger buffer makes the first start slower. */
int rl_pc_sampling_open(uint32_t period, size_t buffer_bytes, rl_pc_sampling **sampling, rl_error *err);
/* Returns true when sampling is active and has this configuration. */
bool rl_pc_sampling_matches(const rl_pc_sampling *sampling, uint32_t period, size_t buffer_bytes);
bool rl_pc_sampling_is_active(const rl_pc_sampling *sampling); /* false for NULL and after finish */
int rl_pc_sampling_start(rl_pc_sampling *sampling, rl_error *err);
/* Stops sampling and passes each count to the sink. The device must be idle. */
int rl_pc_sampling_stop(rl_pc_sampling *sampling, const rl_instruction_sink *sink, rl_error *err);
/* Sets *names to the metrics of all stall reasons and returns their number. Valid until close. */
size_t rl_pc_sampling_stall_reasons(const rl_pc_sampling *sampling, const char *const **names);
/* Disables PC sampling for good; only the stall reasons remain available. NULL is allowed. */
void rl_pc_sampling_finish(rl_pc_sampling *sampling);
void rl_pc_sampling_close(rl_pc_sampling *sampling); /* NULL is allowed */

#endif
