/* What happens inside kernels: counts by instruction, sampled stalls, listings; and where the device sits. The counters pass
 * calls it for the sections that need it. What can't be had is a metric without a value and with its reason; it never fails a
 * pass. */
#ifndef RL_CUPTI_SOURCE_H
#define RL_CUPTI_SOURCE_H

#include <cuda.h>

#include <stdbool.h>

#include "model/profile.h"
#include "model/records.h"
#include "worker/code/absence.h"
#include "worker/cupti/flush.h"
#include "worker/cupti/spent.h"
#include "workload.h"

typedef struct rl_source_kernel { /* of a step, in the order in which they are issued */
  const char *symbol;             /* mangled */
  size_t launch;                  /* index in the sequence */
  double duration_ns;             /* roughly; 0 when not known */
  int64_t blocks;
  int64_t ordinal; /* of its rl_kernel in the records; -1: nobody asks for it */
} rl_source_kernel;

typedef struct rl_source_request { /* nothing is owned; all of it must live until rl_source_end */
  rl_instance *instance;
  const rl_sequence *sequence;
  const rl_source_kernel *kernels;
  size_t kernel_count;
  const rl_profile *profile;
  rl_flush *flush;
  int (*restore)(void *context, rl_error *err); /* put the step's inputs back and leave the device idle */
  void (*let_go)(void *context);                /* of the hardware's counters, for who samples them */
  void *context;
  rl_spent *spent; /* NULL is allowed */
} rl_source_request;

typedef struct rl_source rl_source; /* what a resident worker keeps: configurations, disassemblies */

/* When a CUDA context was made (from CUPTI's callback): before it loads modules. From then on modules are followed, but for the
 * time between pause and resume, in which activity can be traced or counters be read: CUPTI does one or the other. A module that
 * is loaded meanwhile has no samples. Each pause has its resume; the last one counts. */
void rl_source_context_made(CUcontext context);
void rl_source_pause(void);
void rl_source_resume(void);
int rl_source_open(int device_index, rl_source **source, rl_error *err);
void rl_source_close(rl_source *source);

/* In this order, rl_source_end in any case: begin before counters are read, since it makes room for them; collect with the
 * kernels in the records, to which it adds metrics, instructions and the hash of the code. -1 when the step can't be replayed.
 * Stalls are sampled at the end, and sampling is kept ready: the next request begins with it. */
int rl_source_begin(rl_source *source, const rl_source_request *request, rl_error *err);
/* Of all kernels that are asked for, as far as their listings are at hand; none where one is not, or where it is not sure whose
 * it is. */
rl_absences rl_source_absences(rl_source *source);
int rl_source_collect(rl_source *source, rl_records *records, rl_error *err);
void rl_source_end(rl_source *source);
void rl_source_release(rl_source *source); /* between requests: let go of what is kept; NULL is allowed */

/* Whether a raw metric of the catalogue is collected here and not by counters, the launch or the device's attributes. */
bool rl_source_collects(const char *metric);

#endif
