/* Collects the data of the counters pass that the range profiler can't collect, for the kernels of a step:
 *
 *   SASS metrics   executed instructions, threads and memory accesses, for each instruction
 *   PC samples     samples of warps and their stall reasons, for each instruction
 *   SASS           disassembly, with source lines
 *   PM samples     timelines: counters of the device at a fixed interval while a kernel runs
 *   topology       the device's CPUs, NUMA nodes and links
 *
 * The order of calls for each request: begin, then the caller's own collection of counters, collect, append, end. begin disables
 * PC sampling, because CUPTI can't collect counters while PC sampling is enabled. restart_pc_sampling may be called between
 * requests. A metric that can't be collected has no value but a reason; it does not fail the pass. Not thread-safe. */
#ifndef RL_CUPTI_INSTRUCTION_PROFILER_H
#define RL_CUPTI_INSTRUCTION_PROFILER_H

#include <cuda.h>

#include <stdbool.h>

#include "model/profile.h"
#include "model/records.h"
#include "worker/code/instruction_classes.h"
#include "worker/cupti/cache_flush.h"
#include "worker/cupti/stage_timer.h"
#include "workload.h"

typedef struct rl_launched_kernel { /* one kernel of a step */
  const char *symbol;               /* mangled name of the function */
  size_t launch_index;              /* index in the sequence of the launch that issued the kernel */
  double duration_ns;               /* approximate; 0: unknown */
  int64_t blocks;
  int64_t ordinal; /* ordinal of the kernel's rl_kernel in the records; -1: not selected */
} rl_launched_kernel;

typedef struct rl_instruction_profiler_request { /* owns nothing; everything must live until rl_instruction_profiler_end */
  rl_instance *instance;
  const rl_sequence *sequence;
  const rl_launched_kernel *kernels; /* kernels of the sequence, in order of issue */
  size_t kernel_count;
  const rl_profile_options *profile_options;
  rl_cache_flush *flush;
  int (*restore)(void *context, rl_error *err);           /* restores the step's inputs; leaves the device idle */
  void (*release_range_profiler)(void *context);          /* CUPTI can't sample while a session of the range profiler is open */
  int (*finish_evaluation)(void *context, rl_error *err); /* called before functions that are not safe beside it */
  void *context;
  rl_stage_timer *timer; /* NULL is allowed */
} rl_instruction_profiler_request;

/* Keeps the configurations and disassemblies between requests. */
typedef struct rl_instruction_profiler rl_instruction_profiler;

int rl_instruction_profiler_open(int device_index, rl_instruction_profiler **profiler, rl_error *err);
void rl_instruction_profiler_close(rl_instruction_profiler *profiler); /* NULL is allowed */
/* Reads what the first request of the set `full` would read, without using the hardware's counters. Failures are ignored, because
 * the request then reports them. */
void rl_instruction_profiler_prepare(rl_instruction_profiler *profiler);

/* begin starts to disassemble the kernels, and disables PC sampling. collect adds timelines to the records. append adds metrics,
 * instructions and code hashes to the kernels in the records. Call end also after a failure. begin and collect return -1 when the
 * step can't be replayed.
 *
 * The first request takes PC samples last, in collect, and leaves PC sampling configured. If PC sampling is still configured at
 * a later request, begin takes the samples first and then disables PC sampling. */
int rl_instruction_profiler_begin(rl_instruction_profiler *profiler, const rl_instruction_profiler_request *request,
                                  rl_error *err);
/* Call after begin. Returns true when nvdisasm still runs and will soon have the SASS of all selected kernels, because their
 * cubins are small. */
bool rl_instruction_profiler_awaits_sass(const rl_instruction_profiler *profiler);
/* Returns CUPTI's name of the device's chip. */
const char *rl_instruction_profiler_chip(const rl_instruction_profiler *profiler);
/* Call after begin. Waits at most timeout_ms for each kernel's SASS. Returns the classes of instructions that no selected kernel
 * has; none when a kernel's SASS is not available or several modules define its symbol with different code. */
rl_instruction_classes rl_instruction_profiler_absent_classes(const rl_instruction_profiler *profiler, int timeout_ms);
int rl_instruction_profiler_collect(rl_instruction_profiler *profiler, rl_records *records, rl_error *err);
int rl_instruction_profiler_append(rl_instruction_profiler *profiler, rl_error *err);
void rl_instruction_profiler_end(rl_instruction_profiler *profiler);
/* Call between requests. Releases the PC sampling configuration and enables PC sampling again if it is allowed, so that modules
 * loaded next have samples. NULL is allowed. */
void rl_instruction_profiler_restart_pc_sampling(rl_instruction_profiler *profiler);

/* Returns true when the instruction profiler, and not the range profiler, collects this raw metric of the catalogue. */
bool rl_instruction_profiler_collects(const char *metric);

#endif
