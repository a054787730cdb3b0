/* Between trace.c, which runs the trace, and activity.c, which makes rows of CUPTI's records. */
#ifndef RL_CUPTI_TRACE_PARTS_H
#define RL_CUPTI_TRACE_PARTS_H

#include <pthread.h>

#include "worker/cupti/trace.h"

enum { RL_TRACE_BUFFERS = 8 /* CUPTI fills one or two at a time while we empty the others */, RL_TRACE_OPEN_RANGES = 256 };

typedef struct rl_open_range {
  uint32_t id, name;
  int64_t start_ns;
} rl_open_range;

struct rl_trace {
  /* Two locks, since CUPTI asks for a buffer under locks of its own: pool is never held across a call into CUPTI. */
  pthread_mutex_t pool, lock;
  uint8_t *spare[RL_TRACE_BUFFERS]; /* zeroed */
  size_t spare_count, lent;
  bool open, running;
  const CUpti_ActivityKind *kinds;
  int64_t start_ns;
  rl_error failed; /* what went wrong on CUPTI's thread */
  rl_names names;
  rl_activity_row *rows;
  size_t row_count, row_capacity;
  rl_mark *marks;
  size_t mark_count, mark_capacity;
  rl_launch_detail *details;
  size_t detail_count, detail_capacity;
  rl_open_range ranges[RL_TRACE_OPEN_RANGES];
  size_t range_count;
  uint64_t kernels, dropped, zero_times;
};

/* Append what a record says to the trace's rows, marks or details; what there is no room for is counted as dropped. Under the
 * trace's lock. */
void rl_trace_take(rl_trace *trace, const CUpti_Activity *record);

#endif
