/* The statistics of a time window of a trace: the busy time of each lane, and the rows of each name. All functions are pure. */
#ifndef RL_ANALYZE_TIMELINE_STATISTICS_H
#define RL_ANALYZE_TIMELINE_STATISTICS_H

#include "analyze/timeline_lanes.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rl_lane_name { /* the rows of a name in a lane */
  uint32_t lane, name;        /* lane: index into lanes */
  int64_t row_count;
  int64_t total_ns;   /* the sum of the durations inside the window */
  int64_t longest_ns; /* the longest of these durations */
} rl_lane_name;

typedef struct rl_interval_ns {
  int64_t start_ns, end_ns;
} rl_interval_ns;

typedef struct rl_lane_statistics {
  rl_lane_key key;
  int64_t row_count;
  int64_t busy_ns;           /* time in which at least one row runs; valid after finish */
  rl_interval_ns *intervals; /* intervals of the rows, inside the window */
  size_t count, capacity;
} rl_lane_statistics;

typedef struct rl_timeline_statistics {
  int64_t from_ns, to_ns;
  int64_t row_count; /* number of rows in all lanes */
  rl_lane_statistics lanes[RL_MAX_LANES];
  size_t lane_count;
  bool truncated;      /* there are further lanes, which are not counted */
  rl_lane_name *names; /* after finish, sorted by total_ns, the largest first */
  size_t name_count, name_capacity;
  uint32_t *slots; /* hash table of names: 1 + index; 0: free */
  size_t slot_count;
} rl_timeline_statistics;

/* Adds a row that overlaps the window. Before the first call, the caller sets from_ns and to_ns of a zeroed struct. Fails with
 * RL_ERRNO if memory is exhausted. */
int rl_timeline_statistics_add(rl_timeline_statistics *statistics, rl_lane_key key, int64_t start_ns, int64_t end_ns,
                               uint32_t name, rl_error *err);
void rl_timeline_statistics_finish(rl_timeline_statistics *statistics);
void rl_timeline_statistics_clear(rl_timeline_statistics *statistics);

#ifdef __cplusplus
}
#endif
#endif
