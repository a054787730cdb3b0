/* Adds up the groups of copies that use pageable memory, and compares the large copies with copies of pinned memory in the same
 * direction. */
#include "analyze/copy_rates.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

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

typedef struct pageable_copies {
  double count, bytes, ns;
  double large_bytes, large_ns; /* sums over large copies with a known pinned rate */
  double pinned_ns;             /* time that large_bytes would take at the pinned rate */
} pageable_copies;

static pageable_copies sum_pageable(const rl_copy_group *groups, size_t count) {
  pageable_copies sum = {0};
  for (size_t i = 0; i < count; i++) {
    const rl_copy_group *group = &groups[i];
    if (!uses_memory(group, RL_MEMORY_PAGEABLE)) continue;
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

static rl_metric_value quotient(const char *name, double dividend, double divisor, const char *reason) {
  return (rl_metric_value){name, divisor > 0 ? dividend / divisor : NAN, divisor > 0 ? NULL : reason};
}

size_t rl_copy_metrics(const rl_copy_group *groups, size_t count, int64_t window_ns,
                       rl_metric_value metrics[RL_COPY_METRIC_COUNT]) {
  static const char none[] = "no copy uses pageable memory";
  static const char unmeasured[] = "the trace has no copies of 1 MiB or more of both pageable and pinned memory in one direction";
  pageable_copies sum = sum_pageable(groups, count);
  const rl_metric_value values[RL_COPY_METRIC_COUNT] = {
      {"timeline__pageable_copies", sum.count, NULL},
      {"timeline__pageable_copies_bytes", sum.bytes, NULL},
      quotient("timeline__pageable_copies_pct", 100 * sum.ns, (double)window_ns, "the window is empty"),
      quotient("timeline__pageable_copies_rate", 1e9 * sum.bytes, sum.ns, none),
      quotient("timeline__pageable_large_rate", 1e9 * sum.large_bytes, sum.large_ns, unmeasured),
      quotient("timeline__pinned_large_rate", 1e9 * sum.large_bytes, sum.pinned_ns, unmeasured),
  };
  memcpy(metrics, values, sizeof values);
  return RL_COPY_METRIC_COUNT;
}
