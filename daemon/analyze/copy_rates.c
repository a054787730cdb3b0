/* Adds up the groups of copies that use pageable memory, and compares the large copies with copies of pinned memory in the same
 * direction. */
#include "analyze/copy_rates.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "analyze/trace_index.h"

static bool uses_memory(const rl_copy_group *group, rl_memory_kind kind) {
  return group->source == kind || group->destination == kind;
}

/* Returns the bytes per second of the large copies that use pinned but not pageable memory, in the direction of `pageable`; NAN:
 * there are none. */
static double pinned_rate(const rl_copy_group *groups, size_t count, const rl_copy_group *pageable) {
  double bytes = 0, ns = 0;
  for (size_t i = 0; i < count; i++) {
    const rl_copy_group *group = &groups[i];
    if (!uses_memory(group, RL_MEMORY_PINNED) || uses_memory(group, RL_MEMORY_PAGEABLE) ||
        strcmp(group->name, pageable->name) != 0)
      continue;
    bytes += (double)group->large_bytes;
    ns += (double)group->large_ns;
  }
  return ns > 0 ? bytes / ns * 1e9 : NAN;
}

/* Returns whether it is unknown if the group uses pageable memory. A copy within or between devices uses none. */
static bool lacks_memory(const rl_copy_group *group) {
  return uses_memory(group, RL_MEMORY_UNKNOWN) && !uses_memory(group, RL_MEMORY_PAGEABLE) &&
         rl_trace_copy_named(group->name) != RL_TRACE_DEVICE_COPY;
}

typedef struct pageable_copies {
  double count, bytes, ns;
  bool lacks_memory;            /* there are copies whose memory is unknown */
  bool lacks_sizes;             /* the sizes of some pageable copies are unknown, and `bytes` is the sum of the others */
  double large_bytes, large_ns; /* sums over large copies with a known pinned rate */
  double pinned_ns;             /* time that large_bytes would take at the pinned rate */
} pageable_copies;

static pageable_copies sum_pageable(const rl_copy_group *groups, size_t count) {
  pageable_copies sum = {0};
  for (size_t i = 0; i < count; i++) {
    const rl_copy_group *group = &groups[i];
    sum.lacks_memory |= lacks_memory(group);
    if (!uses_memory(group, RL_MEMORY_PAGEABLE)) continue;
    sum.lacks_sizes |= group->unsized_count > 0;
    double rate = pinned_rate(groups, count, group);
    sum.count += (double)group->count;
    sum.bytes += (double)group->bytes;
    sum.ns += (double)group->time_ns;
    if (isnan(rate) || group->large_ns == 0) continue;
    sum.large_bytes += (double)group->large_bytes;
    sum.large_ns += (double)group->large_ns;
    sum.pinned_ns += (double)group->large_bytes / rate * 1e9;
  }
  return sum;
}

static rl_metric_value known(const char *name, double value, const char *unknown_reason) {
  return (rl_metric_value){name, unknown_reason == NULL ? value : NAN, unknown_reason};
}

static rl_metric_value quotient(const char *name, double dividend, double divisor, const char *unknown_reason,
                                const char *zero_reason) {
  return known(name, dividend / divisor, unknown_reason != NULL ? unknown_reason : divisor > 0 ? NULL : zero_reason);
}

size_t rl_copy_metrics(const rl_copy_group *groups, size_t count, int64_t window_ns,
                       rl_metric_value metrics[RL_COPY_METRIC_COUNT]) {
  static const char none[] = "no copy uses pageable memory";
  static const char unmeasured[] = "the trace has no copies of 1 MiB or more of both pageable and pinned memory in one direction";
  pageable_copies sum = sum_pageable(groups, count);
  /* If some copies are known to use pageable memory, the metrics are about these copies. */
  const char *no_memory = sum.count == 0 && sum.lacks_memory ? "the trace does not have the kinds of memory of its copies" : NULL;
  const char *no_sizes = sum.lacks_sizes ? "the trace does not have the sizes of its copies" : no_memory;
  const rl_metric_value values[RL_COPY_METRIC_COUNT] = {
      known("timeline__pageable_copies", sum.count, no_memory),
      known("timeline__pageable_copies_bytes", sum.bytes, no_sizes),
      quotient("timeline__pageable_copies_pct", 100 * sum.ns, (double)window_ns, no_memory, "the window is empty"),
      quotient("timeline__pageable_copies_rate", 1e9 * sum.bytes, sum.ns, no_sizes, none),
      quotient("timeline__pageable_large_rate", 1e9 * sum.large_bytes, sum.large_ns, no_memory, unmeasured),
      quotient("timeline__pinned_large_rate", 1e9 * sum.large_bytes, sum.pinned_ns, no_memory, unmeasured),
  };
  memcpy(metrics, values, sizeof values);
  return RL_COPY_METRIC_COUNT;
}
