/* Adds up the times of operations by name, then divides the time of each name among the phases of its shares. */
#include "analyze/phase_times.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- names ------------------------------------------------------------------------------------------------------------- */

int rl_name_times_begin(const rl_trace_index *index, rl_name_times *times, rl_error *err) {
  *times = (rl_name_times){.index = index, .class_ns = calloc(index->events->name_count + 1, sizeof *times->class_ns)};
  return times->class_ns != NULL ? 0 : rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the times of phases");
}

static void add_time(void *context, size_t operation, rl_time_class time_class, int64_t time_ns) {
  const rl_name_times *times = context;
  times->class_ns[times->index->operations[operation]->name][time_class] += time_ns;
}

rl_time_observer rl_name_times_observer(rl_name_times *times) { return (rl_time_observer){add_time, times}; }

void rl_name_times_clear(rl_name_times *times) {
  free(times->class_ns);
  *times = (rl_name_times){0};
}

/* --- phases ------------------------------------------------------------------------------------------------------------ */

/* Returns the phase's item, which it adds if necessary. Returns NULL if a new item would leave no space for the item "". */
static rl_phase_time *item_of(rl_phase_times *phases, const char *phase) {
  for (size_t i = 0; i < phases->count; i++)
    if (strcmp(phases->items[i].phase, phase) == 0) return &phases->items[i];
  if (phases->count == RL_MAX_PHASES - 1) return NULL;
  rl_phase_time *item = &phases->items[phases->count++];
  *item = (rl_phase_time){0};
  memcpy(item->phase, phase, sizeof item->phase);
  return item;
}

static void add_class(rl_phase_time *item, int time_class, int64_t time_ns) {
  item->class_ns[time_class] += time_ns;
  item->time_ns += time_ns;
}

/* Divides the time among the shares. Rounds cumulative sums, not the parts, so that the parts add up to the time. */
static void divide(const int64_t class_ns[RL_TIME_CLASS_COUNT], const rl_phase_share *shares, size_t count,
                   rl_phase_times *phases, rl_phase_time *without_phase) {
  double total = 0;
  for (size_t i = 0; i < count; i++) total += shares[i].weight;
  for (int k = 0; k < RL_TIME_CLASS_COUNT; k++) {
    double sum = 0;
    int64_t given_ns = 0;
    for (size_t i = 0; i < count; i++) {
      rl_phase_time *item = shares[i].phase[0] != '\0' ? item_of(phases, shares[i].phase) : NULL;
      sum += shares[i].weight;
      int64_t until_ns = i + 1 < count ? (int64_t)llround((double)class_ns[k] * (sum / total)) : class_ns[k];
      add_class(item != NULL ? item : without_phase, k, until_ns - given_ns);
      given_ns = until_ns;
    }
  }
}

void rl_phase_times_compute(const rl_name_times *times, const rl_phase_share *shares, size_t count, rl_phase_times *phases) {
  rl_phase_time without_phase = {0};
  size_t i = 0;
  phases->count = 0;
  for (uint32_t name = 0; name < times->index->events->name_count; name++) {
    const size_t first = i;
    while (i < count && shares[i].name == name) i++;
    if (i > first) {
      divide(times->class_ns[name], shares + first, i - first, phases, &without_phase);
      continue;
    }
    for (int k = 0; k < RL_TIME_CLASS_COUNT; k++) add_class(&without_phase, k, times->class_ns[name][k]);
  }
  if (phases->count > 0 && without_phase.time_ns > 0) phases->items[phases->count++] = without_phase;
}
