/* From activity rows to findings: how long the device was busy, which launch a kernel belongs to, and one aggregate for each
 * kernel. Pure: rows and names in, values out; nothing of devices, workloads or the store. */
#ifndef RL_ANALYZE_TIMELINE_H
#define RL_ANALYZE_TIMELINE_H

#include "base/cleanup.h"
#include "model/records.h"

typedef struct rl_busy {
  size_t rows;               /* of work: kernels, copies, sets; spans on the CPU */
  int64_t first_ns, last_ns; /* start of the first and end of the last; 0 when there are none */
  int64_t busy_ns;           /* union of their intervals: overlapping work counts once */
} rl_busy;

/* -1 (RL_SYS) only when memory is out. */
int rl_timeline_busy(const rl_activity_row *rows, size_t count, rl_busy *busy, rl_error *err);

/* A launch that the work was made of, in order; those of one sequence are neighbours and share its repeat. */
typedef struct rl_expected {
  const char *launch, *phase;
  uint32_t sequence;
  uint64_t repeat;
} rl_expected;

/* Which launch each kernel of a trace belongs to. It is learned from a second, small trace in which every sequence ran once,
 * launch by launch, each inside a range of its name: there a kernel is tied to the call that started it (same correlation) and
 * that call lies in the launch's range. So for each function name the order of its launches is known, and in the trace of
 * interest, where graphs hide the calls, the n-th kernel of that name is the n-th of that order, each sequence
 * repeated as often as it was. A name that occurs another number of times than foreseen is attributed to nothing. */
typedef struct rl_attribution rl_attribution;
int rl_attribution_learn(const rl_records *eager, const rl_expected *expected, size_t count, rl_attribution **attribution,
                         rl_error *err);
void rl_attribution_free(rl_attribution *attribution);

typedef struct rl_aggregate_options {
  const rl_attribution *attribution; /* NULL: kernels have no known launch */
  const rl_expected *expected;       /* the launches; a span is attributed by its own name */
  size_t expected_count;
  double epoch_us;                                                /* what share_ratio is of; NAN: not known */
  double (*occupancy)(void *context, const rl_activity_row *row); /* NULL: not known */
  void *context;
  const char *reason; /* why what can't be known here is NAN */
} rl_aggregate_options;

/* Append to into->kernels one aggregate for each launch and function of from's KERNEL and SPAN rows, in the order of their first
 * start. */
int rl_timeline_kernels(const rl_records *from, const rl_aggregate_options *options, rl_records *into, rl_error *err);

RL_DEFINE_CLEANUP(rl_attribution_cleanup, rl_attribution *, rl_attribution_free, NULL)
#endif
