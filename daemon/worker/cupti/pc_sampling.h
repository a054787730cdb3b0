/* PC sampling: CUPTI samples the program counters and the stall reasons of the SMs' warps. Not thread-safe; the process has one
 * CUDA context. Functions that return int return -1 with RL_CUPTI on failure.
 *
 * CUPTI attributes samples only to modules that were loaded while PC sampling was enabled. While it is enabled, activity
 * records and counters can't be collected. So PC sampling is enabled when the context is created, and disabled only between
 * forbid and allow, around other measurements. PC sampling that is enabled but not started costs no time. */
#ifndef RL_CUPTI_PC_SAMPLING_H
#define RL_CUPTI_PC_SAMPLING_H

#include <stdbool.h>

#include "worker/cupti/instruction_count.h"

/* Records the context and enables PC sampling. Call it from CUPTI's callback for a new context, before the context loads
 * modules. */
void rl_pc_sampling_on_context_created(CUcontext context);
CUcontext rl_pc_sampling_context(void); /* returns the process's context; NULL before its creation */
/* forbid disables PC sampling. Each forbid needs an allow; the last allow enables PC sampling again. Modules loaded while it is
 * forbidden have no samples. */
void rl_pc_sampling_forbid(void);
void rl_pc_sampling_allow(void);
void rl_pc_sampling_enable_if_allowed(void); /* does nothing between forbid and allow */
int rl_pc_sampling_enable(rl_error *err);    /* returns 0 even if PC sampling is enabled already */

typedef struct rl_pc_sampling rl_pc_sampling; /* a configuration of PC sampling */

/* The metrics of the counts are CUPTI's "smsp__pcsamp_warps_issue_stalled_*" and this one, which counts all samples of an
 * instruction. */
#define RL_PCSAMP_SAMPLE_COUNT "smsp__pcsamp_sample_count"

/* Configures PC sampling, which must be enabled, for one sample per SM every 2^period_log2 cycles. hardware_buffer_bytes: size of
 * the buffer on the device, which must hold all samples between start and stop. A larger buffer makes the first start slower. */
int rl_pc_sampling_open(uint32_t period_log2, size_t hardware_buffer_bytes, rl_pc_sampling **sampling, rl_error *err);
/* Returns true when sampling is active and has this configuration. */
bool rl_pc_sampling_matches(const rl_pc_sampling *sampling, uint32_t period_log2, size_t hardware_buffer_bytes);
size_t rl_pc_sampling_buffer_bytes(const rl_pc_sampling *sampling); /* hardware_buffer_bytes of the last open; 0 for NULL */
bool rl_pc_sampling_is_active(const rl_pc_sampling *sampling);      /* false for NULL and after disable */
int rl_pc_sampling_start(rl_pc_sampling *sampling, rl_error *err);
/* Stops sampling and passes each count to the sink. Sets *dropped to the number of samples since start that the hardware has
 * dropped because it could not write them fast enough; CUPTI does not know their instructions. Fails if the buffer on the device
 * was full, because then CUPTI returns no samples. The device must be idle. */
int rl_pc_sampling_stop(rl_pc_sampling *sampling, const rl_instruction_sink *sink, uint64_t *dropped, rl_error *err);
/* Sets *names to the metrics of all stall reasons and returns their number. *names is valid until rl_pc_sampling_close. */
size_t rl_pc_sampling_stall_reasons(const rl_pc_sampling *sampling, const char *const **names);
/* Ends this configuration and disables PC sampling; only the stall reasons remain available. NULL is allowed. */
void rl_pc_sampling_disable(rl_pc_sampling *sampling);
void rl_pc_sampling_close(rl_pc_sampling *sampling); /* NULL is allowed */

#endif
