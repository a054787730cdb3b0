/* The lanes of a timeline in a window that is divided into steps of equal length: rows that last at least one step stay as they
 * are, and shorter rows that start in the same step are merged. All functions are pure. */
#ifndef RL_ANALYZE_TIMELINE_LANES_H
#define RL_ANALYZE_TIMELINE_LANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The kinds of lanes, in the order in which a timeline shows them. */
typedef enum rl_lane_kind {
  RL_LANE_RANGES,   /* NVTX ranges, which nest */
  RL_LANE_CALLS,    /* calls of the runtime API and, inside them, of the driver API */
  RL_LANE_LAUNCHES, /* launches on a CPU */
  RL_LANE_KERNELS,  /* kernels of a stream */
  RL_LANE_PHASES,   /* phases inside the launches of a stream */
  RL_LANE_COPIES,   /* copies and memsets of a stream */
  RL_LANE_ALLOCATIONS,
  RL_LANE_OVERHEAD, /* overhead of tracing */
  RL_LANE_KIND_COUNT
} rl_lane_kind;
extern const char *const rl_lane_kind_names[]; /* NULL-terminated */

typedef struct rl_lane_key {
  rl_lane_kind kind;
  uint32_t device; /* device of KERNELS, PHASES and COPIES: 1 + CUDA's number of the device; 0: none, or unknown */
  uint32_t stream; /* stream of KERNELS, PHASES and COPIES; 0 for other kinds */
  uint32_t thread; /* thread of RANGES, CALLS and LAUNCHES; 0: unknown, or another kind */
} rl_lane_key;
/* Returns the lane of a row. kind: rl_activity_kind; device, stream and thread: as in rl_activity_row. */
rl_lane_key rl_lane_key_of(uint32_t kind, uint32_t device, uint32_t stream, uint32_t thread);
/* Compares keys in the order of the lanes. The result is negative, 0 or positive, like the result of memcmp. */
int rl_lane_key_compare(const rl_lane_key *left, const rl_lane_key *right);

/* One row, or the merged rows that start in a step. */
typedef struct rl_lane_item {
  int64_t start_ns, end_ns; /* for merged rows: from the first start to the last end, inside the step */
  int64_t row_count;
  int64_t busy_ns;    /* the sum of the durations */
  int64_t longest_ns; /* the longest duration */
  uint32_t name;      /* name of the longest row */
  uint32_t depth;     /* number of longer items around this one; 0 in lanes whose rows do not nest */
} rl_lane_item;

enum { RL_MAX_LANES = 64, RL_MAX_LANE_DEPTH = 16, RL_MAX_STEPS = 8192, RL_MAX_LONG_ITEMS = 200000 };

typedef struct rl_timeline_lane {
  rl_lane_key key;
  rl_lane_item *items; /* rows that last at least a step; after rl_timeline_lanes_finish: all items, by start, the longer first */
  size_t count, capacity;
  rl_lane_item *steps;  /* steps[s]: the merged short rows of step s; NULL: the lane has no such rows. Not valid after finish */
  uint32_t depth_count; /* number of depths, which is 1 + the largest depth; valid after finish */
} rl_timeline_lane;

typedef struct rl_timeline_lanes {
  int64_t from_ns, step_ns;
  size_t step_count; /* number of steps, at most RL_MAX_STEPS */
  rl_timeline_lane lanes[RL_MAX_LANES];
  size_t count;
  size_t long_items;
  bool truncated; /* there are further lanes */
} rl_timeline_lanes;

/* Sets the window. The length of a step is the smallest power of two in ns with which at most max_steps steps cover the window.
 * max_steps is 1 to RL_MAX_STEPS; 0 <= from_ns < to_ns. The caller clears the lanes. */
void rl_timeline_lanes_init(rl_timeline_lanes *lanes, int64_t from_ns, int64_t to_ns, size_t max_steps);
/* Adds a row, or the sum of several rows that start in the same step. After RL_MAX_LONG_ITEMS items, rows of any duration are
 * merged. Fails with RL_ERRNO if memory is exhausted. */
int rl_timeline_lanes_add(rl_timeline_lanes *lanes, rl_lane_key key, const rl_lane_item *item, rl_error *err);
/* Puts the items of each lane in order and computes their depths. Fails with RL_ERRNO if memory is exhausted. */
int rl_timeline_lanes_finish(rl_timeline_lanes *lanes, rl_error *err);
void rl_timeline_lanes_clear(rl_timeline_lanes *lanes);

#ifdef __cplusplus
}
#endif
#endif
