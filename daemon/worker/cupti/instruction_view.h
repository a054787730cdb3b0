/* Profiles the instructions of a step's kernels: SASS metrics, PC samples, SASS with source lines; besides, PM sampling timelines
 * and the device's topology. The counters pass uses it for the sections that need it. What cannot be collected becomes a metric
 * without a value and with a reason; it does not fail the pass. One thread. */
#ifndef RL_CUPTI_INSTRUCTION_VIEW_H
#define RL_CUPTI_INSTRUCTION_VIEW_H

#include <cuda.h>

#include <stdbool.h>

#include "model/profile.h"
#include "model/records.h"
#include "worker/code/static_zero.h"
#include "worker/cupti/cache_flush.h"
#include "worker/cupti/stage_timer.h"
#include "workload.h"

typedef struct rl_launched_kernel { /* one kernel of a step */
  const char *symbol;               /* mangled */
  size_t launch;                    /* index of its launch in the sequence */
  double duration_ns;               /* approximate; 0: unknown */
  int64_t blocks;
  int64_t ordinal; /* of its rl_kernel in the records; -1: not selected */
} rl_launched_kernel;

typedef struct rl_instruction_view_request { /* owns nothing; everything must live until rl_instruction_view_end */
  rl_instance *instance;
  const rl_sequence *sequence;
  const rl_launched_kernel *kernels; /* of the sequence, in order of issue */
  size_t kernel_count;
  const rl_profile *profile;
  rl_cache_flush *flush;
  int (*restore)(void *context, rl_error *err); /* restores the step's inputs; leaves the device idle */
  void (*release_counters)(void *context);      /* disables the range profiler, which excludes sampling */
  void *context;
  rl_stage_timer *timer; /* NULL is allowed */
} rl_instruction_view_request;

typedef struct rl_instruction_view rl_instruction_view; /* configurations and disassemblies that a resident worker keeps */

int rl_instruction_view_open(int device_index, rl_instruction_view **view, rl_error *err);
void rl_instruction_view_close(rl_instruction_view *view); /* NULL is allowed */

/* For each request, in this order: begin, collect counters, collect, end (end also after a failure). Begin starts disassembling
 * and disables PC sampling, so that counters can be collected. Collect adds metrics, instructions and code hashes to the kernels
 * in the records. -1 when the step cannot be replayed. PC sampling runs last and stays configured, so the next request starts
 * with it. */
int rl_instruction_view_begin(rl_instruction_view *view, const rl_instruction_view_request *request, rl_error *err);
/* After begin: returns the classes of instructions that no selected kernel has. None when a kernel's SASS is not yet available or
 * its code is ambiguous. */
rl_instruction_classes rl_instruction_view_absent_classes(rl_instruction_view *view);
int rl_instruction_view_collect(rl_instruction_view *view, rl_records *records, rl_error *err);
void rl_instruction_view_end(rl_instruction_view *view);
/* Between requests: releases the PC sampling configuration. NULL is allowed. */
void rl_instruction_view_release(rl_instruction_view *view);

/* Whether a raw metric of the catalogue comes from here, and not from counters, the launch or device attributes. */
bool rl_instruction_view_collects(const char *metric);

#endif
