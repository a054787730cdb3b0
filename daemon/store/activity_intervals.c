/* Implements activity_intervals.h. For each level, a hash table sums the rows of each interval of time separately for each lane,
 * that is for each kind, device, stream and thread. A row belongs to the interval in which it starts. A level leaves out the rows
 * that are as long as its intervals or longer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/activity_intervals.h"
#include "store/store_internal.h"

/* Fewer than MIN_ROWS rows get no intervals: queries read such rows one by one just as fast, while each level would store at
 * least one interval for each lane. */
enum { SLOTS = 2 * RL_SLICE_ROWS, MIN_ROWS = 1024, MIN_ROWS_PER_INTERVAL = 8 };
_Static_assert((SLOTS & (SLOTS - 1)) == 0, "find_or_add_interval masks the hash with SLOTS - 1");

typedef struct interval {
  int64_t start_ns;
  uint32_t kind, device, stream, thread;
  uint32_t name_index; /* index of the longest row's name among the names of the pass */
  int64_t row_count, busy_ns, longest_ns;
} interval;

/* The intervals of one level: a hash table with linear probing. A slot with row_count 0 is free. */
typedef struct level_sums {
  interval slots[SLOTS];
  size_t interval_count, row_count;
} level_sums;

static int64_t row_duration_ns(const rl_activity_row *row) { return row->end_ns - row->start_ns; }

static bool has_lane_of(const interval *candidate, const rl_activity_row *row) {
  return candidate->kind == row->kind && candidate->device == row->device && candidate->stream == row->stream &&
         candidate->thread == row->thread;
}

static interval *find_or_add_interval(level_sums *sums, const rl_activity_row *row, int64_t start_ns) {
  uint64_t lane = ((uint64_t)row->stream ^ (uint64_t)row->thread << 20) << 24 ^ (uint64_t)row->device << 8 ^ row->kind;
  uint64_t hash = ((uint64_t)start_ns ^ lane) * UINT64_C(0x9e3779b97f4a7c15);
  size_t slot = (hash >> 32) & (SLOTS - 1);
  for (;; slot = (slot + 1) & (SLOTS - 1)) {
    interval *found = &sums->slots[slot];
    if (found->row_count == 0) break;
    if (found->start_ns == start_ns && has_lane_of(found, row)) return found;
  }
  sums->interval_count++;
  sums->slots[slot] = (interval){.start_ns = start_ns,
                                 .kind = row->kind,
                                 .device = row->device,
                                 .stream = row->stream,
                                 .thread = row->thread,
                                 .longest_ns = -1};
  return &sums->slots[slot];
}

static void add_row(level_sums *sums, const rl_activity_row *row, int level) {
  int64_t start_ns = row->start_ns & ~(rl_activity_level_ns(level) - 1), duration_ns = row_duration_ns(row);
  interval *found = find_or_add_interval(sums, row, start_ns);
  found->row_count++;
  found->busy_ns += duration_ns;
  if (duration_ns > found->longest_ns) found->name_index = row->name, found->longest_ns = duration_ns;
  sums->row_count++;
}

static void sum_level(level_sums *sums, const rl_activity_row *rows, size_t count, int level) {
  memset(sums, 0, sizeof *sums);
  for (size_t i = 0; i < count; i++)
    if (rl_activity_lowest_level_above(row_duration_ns(&rows[i])) <= level) add_row(sums, &rows[i], level);
}

static int insert_level(rl_db *db, int64_t pass, const level_sums *sums, int level, rl_error *err) {
  sqlite3_stmt *statement = NULL;
  if (rl_db_prepare(db, "activity_intervals_add", NULL, 0, &statement, err) < 0) return -1;
  for (size_t i = 0; i < SLOTS; i++) {
    const interval *slot = &sums->slots[i];
    if (slot->row_count == 0) continue;
    const int64_t values[] = {pass,         level,           slot->start_ns, slot->kind,       slot->device,    slot->stream,
                              slot->thread, slot->row_count, slot->busy_ns,  slot->longest_ns, slot->name_index};
    if (rl_db_run_positional(db, statement, values, sizeof values / sizeof *values, err) < 0) return -1;
  }
  return 0;
}

/* Stores the levels from the highest down, and ends before the first level with fewer than MIN_ROWS_PER_INTERVAL rows per
 * interval. */
int rl_activity_intervals_add(rl_db *db, int64_t pass, const rl_activity_row *rows, size_t count, int *first_level,
                              rl_error *err) {
  *first_level = RL_NO_LEVEL;
  if (count < MIN_ROWS) return 0;
  level_sums *sums = malloc(sizeof *sums);
  if (sums == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for activity rows");
  int rc = 0;
  for (int level = RL_ACTIVITY_LEVELS - 1; level >= 0 && rc == 0; level--) {
    sum_level(sums, rows, count, level);
    if (sums->interval_count * MIN_ROWS_PER_INTERVAL > sums->row_count) break;
    rc = insert_level(db, pass, sums, level, err);
    *first_level = level;
  }
  free(sums);
  return rc;
}
