/* Adds up the rows of a time window by lane and by name. */
#include "analyze/timeline_statistics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

enum { MIN_SLOTS = 1 << 8, SLOTS_PER_NAME = 2 };

void rl_timeline_statistics_clear(rl_timeline_statistics *statistics) {
  for (size_t i = 0; i < statistics->lane_count; i++) free(statistics->lanes[i].intervals);
  free(statistics->names);
  free(statistics->slots);
  *statistics = (rl_timeline_statistics){0};
}

/* Returns the index of the lane, or RL_MAX_LANES if there are too many. */
static size_t find_lane(rl_timeline_statistics *statistics, rl_lane_key key) {
  size_t i = 0;
  while (i < statistics->lane_count && rl_lane_key_compare(&statistics->lanes[i].key, &key) != 0) i++;
  if (i < statistics->lane_count) return i;
  statistics->truncated |= i == RL_MAX_LANES;
  if (i < RL_MAX_LANES) statistics->lanes[statistics->lane_count++] = (rl_lane_statistics){.key = key};
  return i;
}

/* Returns the slot of the name in the lane, or the free slot for it. */
static size_t find_slot(const rl_timeline_statistics *statistics, uint32_t lane, uint32_t name) {
  const size_t mask = statistics->slot_count - 1;
  size_t slot = (((uint64_t)lane << 32 | name) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
  for (; statistics->slots[slot] != 0; slot = (slot + 1) & mask) {
    const rl_lane_name *entry = &statistics->names[statistics->slots[slot] - 1];
    if (entry->lane == lane && entry->name == name) break;
  }
  return slot;
}

static int reserve_slots(rl_timeline_statistics *statistics, rl_error *err) {
  size_t slot_count = statistics->slot_count != 0 ? statistics->slot_count : MIN_SLOTS;
  if ((statistics->name_count + 1) * SLOTS_PER_NAME <= statistics->slot_count) return 0;
  while (slot_count < (statistics->name_count + 1) * SLOTS_PER_NAME) slot_count *= 2;
  uint32_t *slots = calloc(slot_count, sizeof *slots);
  if (slots == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the statistics of a timeline");
  free(statistics->slots);
  statistics->slots = slots;
  statistics->slot_count = slot_count;
  for (size_t i = 0; i < statistics->name_count; i++)
    slots[find_slot(statistics, statistics->names[i].lane, statistics->names[i].name)] = (uint32_t)i + 1;
  return 0;
}

static int add_to_name(rl_timeline_statistics *statistics, uint32_t lane, uint32_t name, int64_t duration_ns, rl_error *err) {
  if (reserve_slots(statistics, err) < 0) return -1;
  size_t slot = find_slot(statistics, lane, name);
  if (statistics->slots[slot] == 0) {
    if (rl_array_reserve(&statistics->names, statistics->name_count, &statistics->name_capacity, sizeof *statistics->names, err) <
        0)
      return -1;
    statistics->names[statistics->name_count++] = (rl_lane_name){.lane = lane, .name = name};
    statistics->slots[slot] = (uint32_t)statistics->name_count;
  }
  rl_lane_name *found = &statistics->names[statistics->slots[slot] - 1];
  found->row_count++;
  found->total_ns += duration_ns;
  if (duration_ns > found->longest_ns) found->longest_ns = duration_ns;
  return 0;
}

int rl_timeline_statistics_add(rl_timeline_statistics *statistics, rl_lane_key key, int64_t start_ns, int64_t end_ns,
                               uint32_t name, rl_error *err) {
  size_t index = find_lane(statistics, key);
  if (index == RL_MAX_LANES) return 0;
  rl_lane_statistics *lane = &statistics->lanes[index];
  if (start_ns < statistics->from_ns) start_ns = statistics->from_ns;
  if (end_ns > statistics->to_ns) end_ns = statistics->to_ns;
  if (end_ns < start_ns) end_ns = start_ns;
  if (rl_array_reserve(&lane->intervals, lane->count, &lane->capacity, sizeof *lane->intervals, err) < 0) return -1;
  lane->intervals[lane->count++] = (rl_interval_ns){start_ns, end_ns};
  lane->row_count++;
  statistics->row_count++;
  return add_to_name(statistics, (uint32_t)index, name, end_ns - start_ns, err);
}

static int compare_intervals(const void *left, const void *right) {
  const rl_interval_ns *a = left, *b = right;
  return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* Returns the length of the union of a lane's intervals, which it sorts. */
static int64_t measure_busy_time(rl_lane_statistics *lane) {
  int64_t busy_ns = 0, until_ns = INT64_MIN;
  if (lane->count > 0) qsort(lane->intervals, lane->count, sizeof *lane->intervals, compare_intervals);
  for (size_t i = 0; i < lane->count; i++) {
    const rl_interval_ns *interval = &lane->intervals[i];
    int64_t start_ns = interval->start_ns > until_ns ? interval->start_ns : until_ns;
    if (interval->end_ns <= start_ns) continue;
    busy_ns += interval->end_ns - start_ns;
    until_ns = interval->end_ns;
  }
  return busy_ns;
}

static int compare_names(const void *left, const void *right) {
  const rl_lane_name *a = left, *b = right;
  if (a->total_ns != b->total_ns) return a->total_ns < b->total_ns ? 1 : -1;
  if (a->lane != b->lane) return a->lane < b->lane ? -1 : 1;
  return (a->name > b->name) - (a->name < b->name);
}

void rl_timeline_statistics_finish(rl_timeline_statistics *statistics) {
  for (size_t i = 0; i < statistics->lane_count; i++) statistics->lanes[i].busy_ns = measure_busy_time(&statistics->lanes[i]);
  if (statistics->name_count > 0) qsort(statistics->names, statistics->name_count, sizeof *statistics->names, compare_names);
}
