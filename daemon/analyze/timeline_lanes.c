/* Sorts the rows of a trace into lanes, and merges rows that are shorter than a step. */
#include "analyze/timeline_lanes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "model/records.h"

const char *const rl_lane_kind_names[] = {"ranges", "calls",       "launches", "kernels", "phases",
                                          "copies", "allocations", "overhead", NULL};

static const rl_lane_kind lane_kinds[RL_ACTIVITY_KIND_COUNT] = {
    [RL_ACTIVITY_KERNEL] = RL_LANE_KERNELS,    [RL_ACTIVITY_MEMCPY] = RL_LANE_COPIES,
    [RL_ACTIVITY_MEMSET] = RL_LANE_COPIES,     [RL_ACTIVITY_MEMORY] = RL_LANE_ALLOCATIONS,
    [RL_ACTIVITY_RUNTIME] = RL_LANE_CALLS,     [RL_ACTIVITY_DRIVER] = RL_LANE_CALLS,
    [RL_ACTIVITY_NVTX_RANGE] = RL_LANE_RANGES, [RL_ACTIVITY_OVERHEAD] = RL_LANE_OVERHEAD,
    [RL_ACTIVITY_CPU_SPAN] = RL_LANE_LAUNCHES, [RL_ACTIVITY_PHASE] = RL_LANE_PHASES,
};

/* Returns whether a lane of this kind has the rows of one stream, which run one after the other. */
static bool is_of_stream(rl_lane_kind kind) {
  return kind == RL_LANE_KERNELS || kind == RL_LANE_PHASES || kind == RL_LANE_COPIES;
}

static bool is_of_thread(rl_lane_kind kind) {
  return kind == RL_LANE_RANGES || kind == RL_LANE_CALLS || kind == RL_LANE_LAUNCHES;
}

rl_lane_key rl_lane_key_of(uint32_t kind, uint32_t device, uint32_t stream, uint32_t thread) {
  rl_lane_key key = {.kind = kind < RL_ACTIVITY_KIND_COUNT ? lane_kinds[kind] : RL_LANE_OVERHEAD};
  if (is_of_stream(key.kind)) key.device = device, key.stream = stream;
  if (is_of_thread(key.kind)) key.thread = thread;
  return key;
}

static int compare_numbers(uint32_t left, uint32_t right) { return (left > right) - (left < right); }

/* The lanes of a thread are adjacent in this order, and so are the lanes of a stream. */
int rl_lane_key_compare(const rl_lane_key *left, const rl_lane_key *right) {
  const bool are_of_threads = is_of_thread(left->kind) && is_of_thread(right->kind);
  const bool are_of_streams = is_of_stream(left->kind) && is_of_stream(right->kind);
  if (are_of_threads && left->thread != right->thread) return compare_numbers(left->thread, right->thread);
  if (are_of_streams && left->device != right->device) return compare_numbers(left->device, right->device);
  if (are_of_streams && left->stream != right->stream) return compare_numbers(left->stream, right->stream);
  return (int)left->kind - (int)right->kind;
}

void rl_timeline_lanes_init(rl_timeline_lanes *lanes, int64_t from_ns, int64_t to_ns, size_t max_steps) {
  int64_t step_ns = 1;
  while (to_ns / step_ns - from_ns / step_ns >= (int64_t)max_steps) step_ns *= 2;
  memset(lanes, 0, sizeof *lanes);
  lanes->step_ns = step_ns;
  lanes->from_ns = from_ns / step_ns * step_ns;
  lanes->step_count = (size_t)((to_ns - 1) / step_ns - from_ns / step_ns) + 1;
}

void rl_timeline_lanes_clear(rl_timeline_lanes *lanes) {
  for (size_t i = 0; i < lanes->count; i++) {
    free(lanes->lanes[i].items);
    free(lanes->lanes[i].steps);
  }
  lanes->count = 0;
}

/* Returns the lane with this key, which it adds if necessary; NULL if there are too many lanes. */
static rl_timeline_lane *find_lane(rl_timeline_lanes *lanes, rl_lane_key key) {
  for (size_t i = 0; i < lanes->count; i++)
    if (rl_lane_key_compare(&lanes->lanes[i].key, &key) == 0) return &lanes->lanes[i];
  if (lanes->count == RL_MAX_LANES) {
    lanes->truncated = true;
    return NULL;
  }
  lanes->lanes[lanes->count] = (rl_timeline_lane){.key = key};
  return &lanes->lanes[lanes->count++];
}

static int append_item(rl_timeline_lane *lane, const rl_lane_item *item, rl_error *err) {
  if (rl_array_reserve(&lane->items, lane->count, &lane->capacity, sizeof *lane->items, err) < 0) return -1;
  lane->items[lane->count++] = *item;
  return 0;
}

static size_t step_of(const rl_timeline_lanes *lanes, int64_t start_ns) {
  int64_t step = start_ns > lanes->from_ns ? (start_ns - lanes->from_ns) / lanes->step_ns : 0;
  return step < (int64_t)lanes->step_count ? (size_t)step : lanes->step_count - 1;
}

static void merge(rl_lane_item *into, const rl_lane_item *item) {
  if (into->row_count == 0) {
    *into = *item;
    return;
  }
  if (item->start_ns < into->start_ns) into->start_ns = item->start_ns;
  if (item->end_ns > into->end_ns) into->end_ns = item->end_ns;
  if (item->longest_ns > into->longest_ns) into->longest_ns = item->longest_ns, into->name = item->name;
  into->row_count += item->row_count;
  into->busy_ns += item->busy_ns;
}

int rl_timeline_lanes_add(rl_timeline_lanes *lanes, rl_lane_key key, const rl_lane_item *item, rl_error *err) {
  rl_timeline_lane *lane = find_lane(lanes, key);
  if (lane == NULL) return 0;
  bool is_long = item->row_count == 1 && item->end_ns - item->start_ns >= lanes->step_ns;
  if (is_long && lanes->long_items < RL_MAX_LONG_ITEMS) {
    lanes->long_items++;
    return append_item(lane, item, err);
  }
  if (lane->steps == NULL) lane->steps = calloc(lanes->step_count, sizeof *lane->steps);
  if (lane->steps == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the lanes of a timeline");
  merge(&lane->steps[step_of(lanes, item->start_ns)], item);
  return 0;
}

/* Cuts merged rows at the ends of their step: a row may start before the window, or end in the next step. */
static void clip(rl_lane_item *item, int64_t step_start_ns, int64_t step_ns) {
  if (item->row_count == 1) return;
  if (item->start_ns < step_start_ns) item->start_ns = step_start_ns;
  if (item->end_ns > step_start_ns + step_ns) item->end_ns = step_start_ns + step_ns;
}

static int append_steps(const rl_timeline_lanes *lanes, rl_timeline_lane *lane, rl_error *err) {
  for (size_t i = 0; lane->steps != NULL && i < lanes->step_count; i++) {
    if (lane->steps[i].row_count == 0) continue;
    clip(&lane->steps[i], lanes->from_ns + (int64_t)i * lanes->step_ns, lanes->step_ns);
    if (append_item(lane, &lane->steps[i], err) < 0) return -1;
  }
  free(lane->steps);
  lane->steps = NULL;
  return 0;
}

static int compare_items(const void *left, const void *right) {
  const rl_lane_item *a = left, *b = right;
  if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns ? -1 : 1;
  return (a->end_ns < b->end_ns) - (a->end_ns > b->end_ns);
}

/* Gives each item the lowest depth at which no long item is open. Items shorter than a step do not occupy their depth, because at
 * this resolution a chart does not show whether they nest. */
static void set_depths(rl_timeline_lane *lane, int64_t step_ns) {
  int64_t open_until_ns[RL_MAX_LANE_DEPTH] = {0};
  for (size_t i = 0; i < lane->count; i++) {
    rl_lane_item *item = &lane->items[i];
    uint32_t depth = 0;
    while (depth < RL_MAX_LANE_DEPTH - 1 && open_until_ns[depth] > item->start_ns) depth++;
    if (item->end_ns - item->start_ns >= step_ns && item->end_ns > open_until_ns[depth]) open_until_ns[depth] = item->end_ns;
    item->depth = depth;
    if (depth >= lane->depth_count) lane->depth_count = depth + 1;
  }
}

static int compare_lanes(const void *left, const void *right) {
  return rl_lane_key_compare(&((const rl_timeline_lane *)left)->key, &((const rl_timeline_lane *)right)->key);
}

int rl_timeline_lanes_finish(rl_timeline_lanes *lanes, rl_error *err) {
  for (size_t i = 0; i < lanes->count; i++) {
    rl_timeline_lane *lane = &lanes->lanes[i];
    if (append_steps(lanes, lane, err) < 0) return -1;
    if (lane->count > 0) qsort(lane->items, lane->count, sizeof *lane->items, compare_items);
    lane->depth_count = 1;
    if (!is_of_stream(lane->key.kind)) set_depths(lane, lanes->step_ns);
  }
  qsort(lanes->lanes, lanes->count, sizeof *lanes->lanes, compare_lanes);
  return 0;
}
