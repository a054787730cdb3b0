/* Adds up the times of operations by name, then divides the time of each name among the phases of its shares. */
#include "analyze/phase_times.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* --- names ------------------------------------------------------------------------------------------------------------- */

int rl_name_times_begin(const rl_trace_index *index, const int64_t *path_ns, rl_name_times *times, rl_error *err) {
  const size_t count = index->events->name_count + 1;
  *times = (rl_name_times){
      .index = index, .class_ns = calloc(count, sizeof *times->class_ns), .totals = calloc(count, sizeof *times->totals)};
  if (times->class_ns == NULL || times->totals == NULL)
    return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the times of phases");
  for (size_t i = 0; i < index->operation_count; i++)
    rl_operation_totals_add(index, path_ns, i, times->totals[index->operations[i]->name]);
  return 0;
}

static void add_time(void *context, size_t operation, rl_time_class time_class, int64_t time_ns) {
  const rl_name_times *times = context;
  times->class_ns[times->index->operations[operation]->name][time_class] += time_ns;
}

rl_time_observer rl_name_times_observer(rl_name_times *times) { return (rl_time_observer){add_time, times}; }

void rl_name_times_clear(rl_name_times *times) {
  free(times->class_ns);
  free(times->totals);
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

typedef struct value_list { /* values of a name, and where their parts are added */
  const int64_t *values;
  size_t count;
  size_t offset; /* offset in rl_phase_time of an array of as many values */
} value_list;

/* Divides the values among the phases of the shares. Rounds cumulative sums, not the parts, so that the parts add up to the
 * values. */
static void divide(const value_list *list, const rl_phase_share *shares, size_t count, rl_phase_times *phases,
                   rl_phase_time *without_phase) {
  double total = 0;
  for (size_t i = 0; i < count; i++) total += shares[i].weight;
  for (size_t k = 0; k < list->count; k++) {
    double sum = 0;
    int64_t given = 0;
    for (size_t i = 0; i < count; i++) {
      rl_phase_time *item = shares[i].phase[0] != '\0' ? item_of(phases, shares[i].phase) : NULL;
      if (item == NULL) item = without_phase;
      sum += shares[i].weight;
      const int64_t until = i + 1 < count ? (int64_t)llround((double)list->values[k] * (sum / total)) : list->values[k];
      ((int64_t *)((char *)item + list->offset))[k] += until - given;
      given = until;
    }
  }
}

/* Adds the values of a name, without shares to the item without a phase. */
static void add_name(const rl_name_times *times, uint32_t name, const rl_phase_share *shares, size_t count,
                     rl_phase_times *phases, rl_phase_time *without_phase) {
  static const rl_phase_share no_phase = {.weight = 1};
  const value_list lists[] = {{times->class_ns[name], RL_TIME_CLASS_COUNT, offsetof(rl_phase_time, class_ns)},
                              {times->totals[name], RL_OPERATION_TOTAL_COUNT, offsetof(rl_phase_time, totals)}};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
    divide(&lists[i], count > 0 ? shares : &no_phase, count > 0 ? count : 1, phases, without_phase);
}

static void add_up_classes(rl_phase_time *item) {
  for (int k = 0; k < RL_TIME_CLASS_COUNT; k++) item->time_ns += item->class_ns[k];
}

void rl_phase_times_compute(const rl_name_times *times, const rl_phase_share *shares, size_t count, rl_phase_times *phases) {
  rl_phase_time without_phase = {0};
  size_t i = 0;
  phases->count = 0;
  for (uint32_t name = 0; name < times->index->events->name_count; name++) {
    const size_t first = i;
    while (i < count && shares[i].name == name) i++;
    add_name(times, name, shares + first, i - first, phases, &without_phase);
  }
  add_up_classes(&without_phase);
  for (size_t k = 0; k < phases->count; k++) add_up_classes(&phases->items[k]);
  bool has_rest = without_phase.time_ns > 0;
  for (int k = 0; k < RL_OPERATION_TOTAL_COUNT; k++) has_rest |= without_phase.totals[k] > 0;
  if (phases->count > 0 && has_rest) phases->items[phases->count++] = without_phase;
}
